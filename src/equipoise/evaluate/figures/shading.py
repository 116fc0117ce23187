"""Choose the colours of points by their trust, by other local measures, or by class."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..._types import Array
from ...views.style import COLORS
from ..map_measures import MapMeasures
from ..reading import KEPT, NEAR

# P. Tol, "Colour Schemes", 2021, four colours of the sunset scheme, distinct under all common colour blindnesses.
SHADES = ("#364b9a", "#6ea6cd", "#fdb366", "#a50026")
UNMEASURED = "#cccccc"
BEST = 0.99  # lower limit of trust and continuity in the first shade; their other limits are those of reading.py

TRUST = "Trust is 1 if all neighbours in the map are neighbours in the data, and low if some are false neighbours."
CONTINUITY = "Continuity is 1 if all neighbours in the data are neighbours in the map, and low if some are far away."
KEPT_HINT = "Fraction of a point's nearest neighbours in the data that are among its nearest in the map."


@dataclass(frozen=True)
class Shading:
    """A colouring of m points by class, or by a measure; a shade is then the colour of one range of the measure.

    Attributes
    ----------
    title : str
    hint : str
        A sentence that explains the colouring.
    codes : ndarray of uint8, or of int32 for 256 classes or more, shape (m,)
        Index of the shade or class of each point.
    colors, names : tuple of str
        The colour and the name of each shade or class.
    """

    title: str
    hint: str
    codes: Array
    colors: tuple[str, ...]
    names: tuple[str, ...]

    def shares(self) -> list[float]:
        """Return the fraction of the points in each shade or class."""
        return (np.bincount(self.codes, minlength=len(self.names)) / len(self.codes)).tolist()


def shadings(report: MapMeasures) -> dict[str, Shading]:
    """Return colourings of the measured points by each local measure of a report, and by class if it has classes."""
    near, kept = (BEST, NEAR.read, NEAR.care), (KEPT.read, KEPT.care, KEPT.care / 2)
    colorings = {
        "trust": by_trust(report.trust),
        "continuity": _by_limits("continuity", CONTINUITY, report.continuity_of_points, near, ".2f"),
        "kept": _by_limits("neighbours kept", KEPT_HINT, report.kept, kept, ".0%"),
    }
    if report.labels is not None:
        values, number = np.unique(np.asarray(report.labels), return_inverse=True)
        colors = tuple(COLORS[i % len(COLORS)] for i in range(len(values)))
        codes = number[report.points].astype(np.uint8 if len(values) < 256 else np.int32)
        colorings["class"] = Shading("class", "The classes of the labels.", codes, colors, tuple(map(str, values)))
    return colorings


def by_trust(values: Array) -> Shading:
    """Return a colouring of m points by their trust, `values` (m,)."""
    return _by_limits("trust", TRUST, values, (BEST, NEAR.read, NEAR.care), ".2f")


def _by_limits(title: str, hint: str, values: Array, limits: tuple[float, ...], form: str) -> Shading:
    """Return a colouring of points by `values` (m,), with shades separated by descending `limits`.

    The names of the shades show the limits in the format `form`.
    """
    codes = sum((values < limit).astype(np.uint8) for limit in limits)
    written = [f"{limit:{form}}" for limit in limits]
    between = [f"{low} to {high}" for high, low in pairwise(written)]
    names = (f"{written[0]} or more", *between, f"below {written[-1]}")
    return Shading(title, hint, np.asarray(codes, np.uint8), SHADES, names)

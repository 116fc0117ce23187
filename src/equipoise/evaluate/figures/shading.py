"""Colours of points by how far they may be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Array
from ...views.style import COLORS
from ..reading import KEPT, NEAR

if TYPE_CHECKING:
    from ..report import Report

# P. Tol, "Colour Schemes", 2021, four colours of the sunset scheme: told apart with every common colour-blindness.
SHADES = ("#364b9a", "#6ea6cd", "#fdb366", "#a50026")
UNMEASURED = "#cccccc"
BEST = 0.99  # trust and continuity from which a point gets the first shade; the other limits are those of the sentences

TRUST = "Trust is 1 where all near points are near in the data, and low where strangers are among them."
CONTINUITY = "Continuity is 1 where no neighbour in the data is torn away, and low where some are far off."
SAME = "The share of a point's nearest neighbours in the data that are also its nearest in the map."


@dataclass(frozen=True)
class Shading:
    """Points in a few shades: the code of a point numbers the colour and the name of its shade."""

    title: str
    hint: str  # what it means, in a sentence
    codes: Array  # (m,) uint8
    colors: tuple[str, ...]
    names: tuple[str, ...]

    def shares(self) -> list[float]:
        """Return the share of the points in each shade."""
        return (np.bincount(self.codes, minlength=len(self.names)) / len(self.codes)).tolist()


def shadings(report: Report) -> dict[str, Shading]:
    """Return the points of a report shaded by each of its local measures, and by their classes if they have some."""
    near, kept = (BEST, NEAR.read, NEAR.care), (KEPT.read, KEPT.care, KEPT.care / 2)
    found = {
        "trust": by_trust(report.trust),
        "continuity": _by_limits("continuity", CONTINUITY, report.continuity_of_points, near, ".2f"),
        "kept": _by_limits("neighbours kept", SAME, report.kept, kept, ".0%"),
    }
    if report.labels is not None:
        values, number = np.unique(report.labels, return_inverse=True)
        colors = tuple(COLORS[i % len(COLORS)] for i in range(len(values)))
        codes = number[report.points].astype(np.uint8 if len(values) < 256 else np.int32)
        found["class"] = Shading("class", "Classes as they were given.", codes, colors, tuple(map(str, values)))
    return found


def by_trust(values: Array) -> Shading:
    """Return shades of the trust of points."""
    return _by_limits("trust", TRUST, values, (BEST, NEAR.read, NEAR.care), ".2f")


def _by_limits(title: str, hint: str, values: Array, limits: tuple[float, ...], form: str) -> Shading:
    """Return shades between falling limits."""
    codes = sum((values < limit).astype(np.uint8) for limit in limits)
    written = [f"{limit:{form}}" for limit in limits]
    between = [f"{low} to {high}" for high, low in pairwise(written)]
    names = (f"{written[0]} or more", *between, f"below {written[-1]}")
    return Shading(title, hint, np.asarray(codes, np.uint8), SHADES, names)

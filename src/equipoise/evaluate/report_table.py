"""Format the measures of a report as a table, for one map or for several maps side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from .map_measures import MapMeasures
from .ranks import worst_penalty


class Row(NamedTuple):
    """A row of the table: a measure, how to format it, and its values for a perfect and for a random map.

    Attributes
    ----------
    name : str
        Name of the measure.
    value : callable
        Takes the measures of a map and returns the number to show, or None if it was not measured.
    form : str
        Format of the number, such as ".3f".
    perfect, random : callable
        Take the measures of a map. `perfect` returns the number for a perfect map of the same data; `random` returns
        the number for a random map, or None if this number is unknown.
    is_bound : bool, default=False
        Whether `perfect` returns a lower bound, which need not be attained.
    """

    name: str
    value: Callable[[MapMeasures], float | None]
    form: str
    perfect: Callable[[MapMeasures], float]
    random: Callable[[MapMeasures], float | None]
    is_bound: bool = False

    def write(self, value: float | None) -> str:
        """Return the formatted number, with its standard error unless that rounds to 0; empty text for None."""
        if value is None:
            return ""
        error, zero = f"{getattr(value, 'error', 0.0):{self.form}}", f"{0.0:{self.form}}"
        return f"{float(value):{self.form}}" + (f" ± {error}" if error != zero else "")

    def write_perfect(self, measures: MapMeasures) -> str:
        """Return the formatted number of a perfect map, after ≥ if it is a positive lower bound."""
        text, zero = self.write(self.perfect(measures)), f"{0.0:{self.form}}"
        return f"≥ {text}" if self.is_bound and text != zero else text


def random_trust(n: int, k: int) -> float:
    """Return the expected trustworthiness of a random map of n points, which is also its expected continuity.

    See docs/math.md, section 19.
    """
    penalty = k * (n - 1 - k) * (n - k) / (2 * (n - 1))
    return 1 - penalty / max(1, worst_penalty(n, k))


def _one(measures: MapMeasures) -> float:
    return 1.0


def _lowest_stress(measures: MapMeasures) -> float:
    """Return the lower bound on the stress of every map of all points; 0 if none is known.

    None is known if only a sample was measured, or for distances that are not those of coordinates, as on a torus.
    """
    lowest, geometry = measures.lowest_stress, measures.geometry
    known = len(lowest.points) == measures.n and (geometry is None or geometry.pairs is None)
    return lowest.bound if known else 0.0


def _data_error(measures: MapMeasures) -> float:
    return float(measures.class_errors[1]) if measures.class_errors else 0.0


def _random_trust(measures: MapMeasures) -> float:
    return random_trust(measures.n, measures.k)


def _chance_error(measures: MapMeasures) -> float | None:
    """Return the probability that two random points have different classes; None without classes."""
    if measures.labels is None:
        return None
    known = np.ma.compressed(measures.labels)
    fractions = np.unique(known, return_counts=True)[1] / len(known)
    return float(1 - (fractions**2).sum())


ROWS = (
    Row("trustworthiness", lambda m: m.trustworthiness, ".3f", _one, _random_trust),
    Row("continuity", lambda m: m.continuity, ".3f", _one, _random_trust),
    Row("neighbours kept", lambda m: m.recall, ".1%", _one, lambda m: m.k / (m.n - 1)),
    Row("triplets in order", lambda m: m.triplet_accuracy, ".1%", _one, lambda m: 0.5),
    Row("distances, rank corr.", lambda m: m.shepard.correlation, ".3f", _one, lambda m: 0.0),
    Row("stress, scale free", lambda m: m.stress.scale_free, ".3f", _lowest_stress, lambda m: None, True),
    Row("dilation, 95% over 5%", lambda m: m.stretch, ".2f", _one, lambda m: None),
    Row("densities, rank corr.", lambda m: m.density_correlation, ".3f", _one, lambda m: 0.0),
    Row("nearest of another class", lambda m: m.class_errors and m.class_errors[0], ".1%", _data_error, _chance_error),
    Row("class centres, rank corr.", lambda m: m.centroid_correlation, ".3f", _one, lambda m: 0.0),
)


def report_rows(measures: MapMeasures) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table of one map: name, value, perfect, random."""
    rows = [
        [row.name, row.write(value), row.write_perfect(measures), row.write(row.random(measures))]
        for row in ROWS
        if (value := row.value(measures)) is not None
    ]
    return ["", "this map", "perfect", "random"], rows


def comparison_rows(reports: Mapping[str, MapMeasures]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table of several maps; the values closest to perfect are starred.

    Measures that some of the maps lack are left out.
    """
    rows = []
    for row in ROWS:
        values = [row.value(report) for report in reports.values()]
        if any(value is None for value in values):
            continue
        perfect = row.perfect(next(iter(reports.values())))
        errors = [abs(float(value) - perfect) for value in values if value is not None]
        best = min(errors)
        stars = (" *" if error == best else "  " for error in errors)
        rows.append([row.name, *(row.write(value) + star for value, star in zip(values, stars, strict=True))])
    return ["", *(f"{name}  " for name in reports)], rows


def as_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text, with names aligned left and numbers right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for name, *numbers in (header, *rows):
        padded = (f"{number:>{width}}" for number, width in zip(numbers, widths[1:], strict=True))
        lines.append("   ".join([f"{name:{widths[0]}}", *padded]).rstrip())
    return "\n".join(lines)


def as_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML without styles."""
    top = "".join(f'<th scope="col">{escape(cell.strip())}</th>' for cell in header)
    body = ""
    for name, *numbers in rows:
        line = "".join(f"<td>{escape(number.strip())}</td>" for number in numbers)
        body += f'<tr><th scope="row">{escape(name)}</th>{line}</tr>'
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"

"""The rows of a report's table, written once for one map and for several side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .ranks import worst_penalty

if TYPE_CHECKING:
    from .report import Report


class Row(NamedTuple):
    """A number of a report: its name, how it is written, and what a perfect and a random map would have."""

    name: str
    value: Callable[[Report], float | None]  # None where the report has no such number
    form: str
    perfect: Callable[[Report], float]
    random: Callable[[Report], float | None]

    def write(self, value: float | None) -> str:
        """Return the number, and its standard error if that shows in as many digits."""
        if value is None:
            return ""
        error, nothing = f"{getattr(value, 'error', 0.0):{self.form}}", f"{0.0:{self.form}}"
        return f"{float(value):{self.form}}" + (f" ± {error}" if error != nothing else "")


def random_trust(n: int, k: int) -> float:
    """Return the trustworthiness of a map whose neighbours have random ranks (docs/math.md, "Reports")."""
    penalty = k * (n - 1 - k) * (n - k) / (2 * (n - 1))
    return 1 - penalty / max(1, worst_penalty(n, k))


def _one(report: Report) -> float:
    return 1.0


def _nought(report: Report) -> float:
    return 0.0


def _in_the_data(report: Report) -> float:
    return float(report.class_errors[1]) if report.class_errors else 0.0


def _by_chance(report: Report) -> float:
    return random_trust(report.n, report.k)


def _mixed(report: Report) -> float | None:
    """Return how often two random points have different classes."""
    if report.labels is None:
        return None
    share = np.unique(report.labels, return_counts=True)[1] / report.n
    return float(1 - (share**2).sum())


ROWS = (
    Row("trustworthiness", lambda r: r.trustworthiness, ".3f", _one, _by_chance),
    Row("continuity", lambda r: r.continuity, ".3f", _one, _by_chance),
    Row("neighbours kept", lambda r: r.recall, ".1%", _one, lambda r: r.k / (r.n - 1)),
    Row("triplets in order", lambda r: r.triplet_accuracy, ".1%", _one, lambda r: 0.5),
    Row("distances, rank corr.", lambda r: r.shepard.correlation, ".3f", _one, lambda r: 0.0),
    Row("stress, scale free", lambda r: r.stress.scale_free, ".3f", _nought, lambda r: None),
    Row("dilation, 95% over 5%", lambda r: r.stretch, ".2f", _one, lambda r: None),
    Row("densities, rank corr.", lambda r: r.density_correlation, ".3f", _one, lambda r: 0.0),
    Row("nearest of another class", lambda r: r.class_errors and r.class_errors[0], ".1%", _in_the_data, _mixed),
    Row("class centres, rank corr.", lambda r: r.centroid_correlation, ".3f", _one, lambda r: 0.0),
)


def cells(report: Report) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table of one map: name, value, perfect, random."""
    rows = [
        [row.name, row.write(value), row.write(row.perfect(report)), row.write(row.random(report))]
        for row in ROWS
        if (value := row.value(report)) is not None
    ]
    return ["", "this map", "perfect", "random"], rows


def side_by_side(reports: dict[str, Report]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table of several maps; the one nearest to perfect is starred."""
    rows = []
    for row in ROWS:
        values = [row.value(report) for report in reports.values()]
        if any(value is None for value in values):
            continue
        perfect = row.perfect(next(iter(reports.values())))
        off = [abs(float(value) - perfect) for value in values if value is not None]
        best = min(range(len(off)), key=off.__getitem__)
        rows.append([row.name, *(row.write(v) + (" *" if i == best else "  ") for i, v in enumerate(values))])
    return ["", *(f"{name}  " for name in reports)], rows


def as_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for name, *numbers in (head, *rows):
        padded = (f"{number:>{width}}" for number, width in zip(numbers, widths[1:], strict=True))
        lines.append("   ".join([f"{name:{widths[0]}}", *padded]).rstrip())
    return "\n".join(lines)


def as_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the same table in HTML, without any style of its own."""
    top = "".join(f'<th scope="col">{escape(cell.strip())}</th>' for cell in head)
    body = ""
    for name, *numbers in rows:
        line = "".join(f"<td>{escape(number.strip())}</td>" for number in numbers)
        body += f'<tr><th scope="row">{escape(name)}</th>{line}</tr>'
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"

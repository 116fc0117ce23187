"""Can this picture be trusted? All measures of a map at once, in numbers, in words and as a page."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .._atomic import atomic_write
from .._types import Array
from ..data import as_array
from ..spaces import MetricSpace
from .checks import K, check_labels, check_pair, is_euclidean_table, resolve_k
from .density import density_correlation
from .distances import Shepard, Stress, shepard, stress
from .measured import Measured, RecallCurve
from .neighborhood import LARGEST
from .ranks import Neighborhoods
from .reading import CARE, NOT, READ, Reading, read
from .report_table import as_html, as_text, cells
from .structure import centroid_correlation, triplet_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 90  # columns of a terminal that sentences are set in
INDENT = 13  # of them for the verdicts


@dataclass(frozen=True, repr=False)
class Report:
    """The measures of a map Y (n, d) of n points, with its values point by point and what follows from them in words.

    `print(report)` gives a short table and the sentences, a notebook shows them with a picture, `to_html` makes a page.
    Numbers are `Measured`: floats with a standard error where they come from a sample. Arrays by point are in the order
    of `points`, the rows that were looked at.
    """

    Y: Array
    labels: Array | None
    k: int
    about: str  # the data in a few words
    neighborhoods: Neighborhoods
    trustworthiness: Measured
    continuity: Measured
    recall: Measured  # share of the k nearest neighbours kept
    recall_curve: RecallCurve
    triplet_accuracy: Measured
    shepard: Shepard
    stress: Stress
    density_correlation: Measured
    class_errors: tuple[Measured, Measured] | None  # of the nearest neighbour's class, in the map and in the data
    centroid_correlation: Measured | None

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.Y)

    @property
    def points(self) -> Array:
        """The rows that the local measures looked at, in order."""
        return self.neighborhoods.points

    @property
    def trust(self) -> Array:
        """Trustworthiness point by point: below 1 where false neighbours are."""
        return _values(self.trustworthiness)

    @property
    def continuity_of_points(self) -> Array:
        """Continuity point by point: below 1 where neighbours are missing."""
        return _values(self.continuity)

    @property
    def kept(self) -> Array:
        """Share of the k nearest neighbours kept, point by point."""
        return _values(self.recall)

    @cached_property
    def stretch(self) -> float:
        """The 95 % quantile of the dilation d_Y/d_X over its 5 % quantile: 1 if all lengths are drawn to one scale."""
        apart = self.shepard.d_x > 0
        low, high = np.quantile(self.shepard.d_y[apart] / self.shepard.d_x[apart], (0.05, 0.95))
        return float(high / low) if low > 0 else np.inf

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """What may be read from the map: of each thing a verdict, and a sentence with the numbers behind it."""
        return read(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The readings in plain words."""
        return tuple(map(str, self.readings))

    @property
    def subtitle(self) -> str:
        """What was compared with what."""
        return f"{self.n:,} points: {self.about}, drawn in {_dimensions(self.Y.shape[1])}; k = {self.k} neighbours"

    @property
    def footer(self) -> str:
        """What the numbers are based on, and what they cannot say."""
        m = len(self.points)
        local = "all points" if m == self.n else f"{m:,} of {self.n:,} points"
        chosen = self.k < K and self.k == resolve_k("auto", self.n)
        few = f" ({self.k} of each, since {K} are too many among {self.n})" if chosen else ""
        return (
            f"Neighbours were looked at for {local}{few}, distances along {len(self.shepard.d_x):,} pairs; ± is a"
            " standard error where a sample was drawn. This is one map: whether another seed or another sample would"
            " show the same, only equipoise.stability can say."
        )

    def __str__(self) -> str:
        lines = [self.subtitle, "", as_text(*cells(self)), ""]
        for verdict in (READ, CARE, NOT):
            head = verdict
            for reading in self.readings:
                if reading.verdict == verdict:
                    lines.append(_hang(head, reading.text))
                    head = ""
        return "\n".join([*lines, "", textwrap.fill(self.footer, WIDTH)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .figures.report_figure import as_image, report_figure

        items = "".join(
            f"<li><b>{escape(reading.about)}: {escape(reading.verdict)}.</b> {escape(reading.text)}</li>"
            for reading in self.readings
        )
        return (
            f"<div><p>{escape(self.subtitle)}</p>{as_image(report_figure(self))}"
            f"{as_html(*cells(self))}<ul>{items}</ul><p><small>{escape(self.footer)}</small></p></div>"
        )

    def figure(self) -> Figure:
        """Return a matplotlib figure: the map by trust, the Shepard plot and the recall curve."""
        from .figures.report_figure import report_figure

        return report_figure(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the report as one self-contained page to `path`, or return it if there is none.

        A click on a point shows its false and its missing neighbours. Needs `pip install "equipoise[pages]"`.
        """
        from .figures.fidelity import fidelity_page

        page = fidelity_page(self)
        if path is None:
            return page
        with atomic_write(path) as file:
            file.write(page.encode())
        return None


def evaluate(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    k: Any = "auto",
    metric: Any = "euclidean",
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Report:
    """Return a report on how far the map Y can be trusted: numbers, per-point arrays, plain sentences, a page.

    Parameters
    ----------
    X : the data: a table (n, D), dense or sparse; distances (n, n) if metric="precomputed"; or a `spaces.MetricSpace`
    Y : the map (n, d), by any method and from any library
    labels : a class per point; adds two measures of classes
    k : neighbours that are looked at; "auto" is 15, on fewer than 31 points half of the others
    metric : of the data, as in the methods
    n_jobs : threads; all cores by default
    random_state : seed of the samples of points, pairs and triplets

    >>> import numpy as np
    >>> from equipoise import evaluate
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> report = evaluate(X, 3 * X)
    >>> float(report.trustworthiness), float(report.recall), round(float(report.stretch), 6)
    (1.0, 1.0, 1.0)
    """
    X = as_array(X)
    data, drawn = check_pair(X, Y, metric)
    n, k = data.n, resolve_k(k, data.n)
    about = _about(X, metric)
    X, Y = X if data.points is None else data.points, drawn.X  # converted once, not by each measure
    number = None if labels is None else check_labels(labels, n)[1]
    centred = number is not None and number.max() > 1 and is_euclidean_table(X, metric)
    options: dict[str, Any] = {"metric": metric, "n_jobs": n_jobs, "random_state": random_state}
    hoods = Neighborhoods(X, Y, max(k, min(LARGEST, n - 1)), **options)
    return Report(
        Y=Y,
        labels=None if labels is None else np.asarray(labels),
        k=k,
        about=about,
        neighborhoods=hoods,
        trustworthiness=hoods.trustworthiness(k),
        continuity=hoods.continuity(k),
        recall=hoods.recall(k),
        recall_curve=hoods.recall_curve(),
        triplet_accuracy=triplet_accuracy(X, Y, metric=metric, random_state=random_state),
        shepard=shepard(X, Y, metric=metric, random_state=random_state),
        stress=stress(X, Y, metric=metric, random_state=random_state),
        density_correlation=density_correlation(data, drawn, hoods, k),
        class_errors=None if number is None else _class_errors(hoods, number),
        centroid_correlation=centroid_correlation(X, Y, labels) if centred else None,
    )


def _class_errors(hoods: Neighborhoods, number: Array) -> tuple[Measured, Measured]:
    """Return how often the nearest other point has another class, in the map and in the data."""
    in_map, in_data = (
        Measured.over((number[near[:, 0]] != number[hoods.points]).astype(np.float64), hoods.points, hoods.n)
        for near in (hoods.near_y, hoods.near_x)
    )
    return in_map, in_data


def _about(X: Any, metric: Any) -> str:
    shape = getattr(X, "shape", None)
    if shape is None:
        return f"the space {X!r}" if isinstance(X, MetricSpace) else "a table"
    if isinstance(metric, str) and metric == "precomputed":
        return "distances as given"
    name = metric if isinstance(metric, str) else "their own"
    return f"{shape[1]:,} column{'s' * (shape[1] != 1)}, {name} distances"


def _dimensions(d: int) -> str:
    return "one dimension" if d == 1 else f"{d} dimensions"


def _values(measured: Measured) -> Array:
    assert measured.values is not None
    return measured.values


def _hang(head: str, text: str) -> str:
    """Return text in lines behind its head."""
    return textwrap.fill(text, WIDTH, initial_indent=f"{head:{INDENT}}", subsequent_indent=" " * INDENT)

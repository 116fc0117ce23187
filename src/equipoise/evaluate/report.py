"""Report how far a map can be trusted: measure it, and write the results as a table, sentences, a figure and a page."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .._atomic import atomic_write
from .._plural import plural
from .._types import Array
from ..geometry import Geometry
from ..inputs import Input, is_space
from .checks import K, check_pair, is_euclidean_table, number_labels, read_data, resolve_k, resolve_metric
from .curved_map import CurvedMap, describe_geometry, sphere_geometry
from .density import density_correlation
from .distances import lowest_stress, shepard, stress
from .given_map import in_geometry
from .local_isometry import STORED, LocalIsometry, map_dimension, measure_local
from .map_measures import MapMeasures
from .measured import Measured
from .neighborhood import LARGEST
from .ranks import Neighborhoods
from .reading import CARE, NOT, READ, Reading, interpret
from .report_table import as_html, as_text, report_rows
from .structure import centroid_correlation, triplet_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOCAL_POINTS = 2_000  # points at which the Jacobian of the map is estimated: 0.2 s for 64 columns; chosen
WIDTH = 90  # characters per line
INDENT = 13  # of them for the verdict


@dataclass(frozen=True, repr=False)
class Report(MapMeasures):
    """All measures of a map, with a summary in words.

    `print(report)` shows a table and the sentences, notebooks also show a figure, and `to_html` writes a page. Numbers
    are `Measured`: floats with a standard error if they come from a sample. Arrays per point are in the order of
    `points`.

    Attributes
    ----------
    Y : ndarray of shape (n, d)
        The map.
    geometry : Geometry or None
        The curved space of the map, whose distances are measured, on a sphere along chords; None in flat space.
    labels : ndarray of shape (n,) or None
        The class of each point.
    k : int
        Size of the neighbourhoods.
    about : str
        Description of the data.
    neighborhoods : Neighborhoods
        The neighbours in the data and in the map, each with their ranks in the other space.
    trustworthiness, continuity : Measured
        Trustworthiness is 1 if no point has false neighbours, which are near in the map but not in the data. Continuity
        is 1 if no point has missing neighbours, which are near in the data but not in the map. Both are 0 at worst.
    recall : Measured
        Mean fraction of a point's k nearest neighbours in the data that are among its k nearest in the map.
    recall_curve : RecallCurve
        Recall for several sizes of neighbourhoods.
    triplet_accuracy : Measured
        Fraction of triplets of points i, j, l for which j and l have the same order by distance from i in data and map.
    shepard : Shepard
        Distances of pairs in the data and in the map, with their rank correlation.
    stress : Stress
        Stress of the map, raw and normalised.
    lowest_stress : LowestStress
        Lower bound on the scale-free stress of every map in as many dimensions, for all points or a sample of them.
    density_correlation : Measured
        Rank correlation of the points' distances to their k-th neighbours in the data and in the map.
    class_errors : (Measured, Measured) or None
        How often the nearest neighbour has a different class, in the map and in the data; None without labels.
    centroid_correlation : Measured or None
        Rank correlation of the distances between class centroids in the data and in the map; None unless there are at
        least three classes, X is a table with Euclidean distances, and the map is not in a curved space.
    local : LocalIsometry or None
        How the map stretches the data around up to 2,000 points; None if there are too few neighbours, on a torus, in
        the hyperbolic plane, or above 3,000 points unless X is a dense table with Euclidean distances.
    remaining_gain : float or None
        `remaining_gain_` of the fitted method: how much further iterations would lower the loss at most, as a fraction
        of the loss; None if the map was passed as an array.
    space : Geometry or None
        The space of the map for drawings, also if its distances are straight lines, as on a sphere; None if it is not
        known.
    n : int
        Number of points.
    points : ndarray of shape (m,)
        The rows for which the local measures were computed.
    trust, continuity_of_points, kept : ndarray of shape (m,)
        Trustworthiness, continuity and recall per point.
    stretch : float
        Ratio of the 95 % to the 5 % quantile of the dilation over the pairs of `shepard`. The dilation of a pair is its
        distance in the map divided by its distance in the data.
    """

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """What can be read from the map: a verdict and a sentence for each feature."""
        return interpret(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of the readings."""
        return tuple(map(str, self.readings))

    @property
    def subtitle(self) -> str:
        """One line that describes the data, the map and the neighbourhoods."""
        where = f"in {_dimensions(self.Y.shape[1])}"
        if self.geometry is not None:
            where = f"{'on' if self.geometry.pairs is None else 'in'} {describe_geometry(self.geometry)}"
        return f"{self.n:,} points: {self.about}, map {where}; k = {self.k} neighbours"

    @property
    def footer(self) -> str:
        """Sentences on how the numbers were measured, and on what a report of one map cannot show."""
        m = len(self.points)
        local = "all points" if m == self.n else f"{m:,} of {self.n:,} points"
        chosen = self.k < K and self.k == resolve_k("auto", self.n)
        few = f" ({self.k} per point, since {K} are too many for {self.n:,} points)" if chosen else ""
        return (
            f"Neighbours were measured for {local}{few}, distances for {len(self.shepard.d_x):,} pairs; ± is the"
            f" standard error of a sampled number. {self._limit} A report describes one map; equipoise.stability shows"
            " how much the map changes with the seed or the sample."
        )

    @property
    def _limit(self) -> str:
        """A sentence on the stress that no map can fall below."""
        lowest, where = self.lowest_stress, _dimensions(self.Y.shape[1])
        flat = (
            "" if self.geometry is None or self.geometry.pairs is None else "flat "
        )  # the bound is one on Euclidean distances
        if len(lowest.points) == self.n:
            return f"No {flat}map in {where} has a scale-free stress below {lowest.bound:.3f}."
        return (
            f"No {flat}map of {len(lowest.points):,} of the points, drawn at random, in {where} has a scale-free stress"
            f" below {lowest.bound:.3f}; this map has {lowest.of_map:.3f} on them."
        )

    def __str__(self) -> str:
        lines = [self.subtitle, "", as_text(*report_rows(self)), ""]
        for verdict in (READ, CARE, NOT):
            heading = verdict
            for reading in self.readings:
                if reading.verdict == verdict:
                    lines.append(_indent(heading, reading.text))
                    heading = ""
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
            f"{as_html(*report_rows(self))}<ul>{items}</ul><p><small>{escape(self.footer)}</small></p></div>"
        )

    def figure(self) -> Figure:
        """Return a matplotlib figure: the map coloured by trust, the Shepard diagram and the recall curve."""
        from .figures.report_figure import report_figure

        return report_figure(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write or return the report as a self-contained page, on which a click on a point shows its neighbours.

        Needs Bokeh: `pip install "equipoise[pages]"`.

        Parameters
        ----------
        path : str or path-like, optional
            File to write; by default the page is returned.

        Returns
        -------
        html : str or None
            The page, or None if it was written to a file.
        """
        from .figures.fidelity import fidelity_page

        page = fidelity_page(self, self.readings, self.subtitle, self.footer)
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
    metric: Any = None,
    geometry: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Report:
    """Measure how far a map can be trusted.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d), or a fitted method
        The map, computed by any method of any library; a fitted method contributes its `embedding_`, and whether its
        loss was still decreasing. The map of a method fitted on a torus or in the hyperbolic plane is measured by the
        distances of that space. Bare coordinates are measured along straight lines, unless `geometry` is given.
    labels : array-like of shape (n,), optional
        The class of each point; adds measures of classes, which leave out the masked points of a masked array.
    k : int or "auto", default="auto"
        Size of the neighbourhoods; "auto" is 15, or (n − 1)/2, rounded down, for fewer than 31 points.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix, "mixed", `Mixed` or `Blocks` for a data frame of
        several kinds of columns; by default that of a fitted method Y, else "euclidean".
    geometry : {"plane", "sphere", "hyperbolic"} or Geometry, optional
        The space of the map, whose distances are measured; by default that of the fitted method Y. For the coordinates
        of a torus pass `eq.geometry.Torus(period)`. The radius of the hyperbolic plane scales all distances; the name
        means radius 1.
    n_jobs : int, optional
        Number of threads for a dense table with Euclidean distances; by default all cores, or OMP_NUM_THREADS if that
        is fewer. Other data use one thread.
    random_state : int or RandomState, default=0
        Seed of the samples of points, pairs and triplets.

    Returns
    -------
    report : Report

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import evaluate
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> report = evaluate(X, 3 * X)
    >>> float(report.trustworthiness), float(report.recall), round(float(report.stretch), 6)
    (1.0, 1.0, 1.0)
    """
    Y = in_geometry(Y, geometry)
    return measure_map(X, Y, labels, k, metric, n_jobs=n_jobs, random_state=random_state)


def measure_map(
    X: Any, Y: Any, labels: Any, k: Any, metric: Any, other: Report | None = None, **sampling: Any
) -> Report:
    """Return the report of `evaluate`.

    `other`, if given, is a report on another map of the same data; its neighbours in the data are reused. `sampling`
    contains `n_jobs` and `random_state`.
    """
    random_state = sampling["random_state"]
    gain, space, sphere = getattr(Y, "remaining_gain_", None), getattr(Y, "geometry_", None), sphere_geometry(Y)
    metric = resolve_metric(metric, Y, X)
    X = read_data(X, metric)
    data, embedding = check_pair(X, Y, metric)
    n, k = data.n, resolve_k(k, data.n)
    about = _describe_data(X, metric)
    X, Y = X if data.points is None else data.points, embedding  # converted once, not by each measure
    number = None if labels is None else number_labels(labels, n)
    curved = isinstance(embedding, CurvedMap)
    has_centroids = number is not None and number.max() > 1 and is_euclidean_table(X, metric) and not curved
    if other is None:
        hoods = Neighborhoods(X, Y, max(k, min(LARGEST, n - 1)), metric=metric, **sampling)
    else:
        hoods = other.neighborhoods.of_map(Y)
    same = other is not None and other.Y.shape[1] == embedding.X.shape[1]
    bound = other.lowest_stress.bound if other is not None and same else None
    return Report(
        Y=embedding.X,
        geometry=embedding.geometry if isinstance(embedding, CurvedMap) else sphere,
        labels=None if labels is None else np.asanyarray(labels),
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
        lowest_stress=lowest_stress(X, Y, metric=metric, random_state=random_state, bound=bound),
        density_correlation=density_correlation(data, embedding, hoods, k),
        class_errors=None if number is None else _class_errors(hoods, number),
        centroid_correlation=centroid_correlation(X, Y, labels) if has_centroids else None,
        local=None if curved else _measure_local(data, embedding.X, hoods, sphere),
        remaining_gain=gain,
        space=space,
    )


def _measure_local(data: Input, Y: Array, hoods: Neighborhoods, sphere: Geometry | None) -> LocalIsometry | None:
    """Return the local measures of up to LOCAL_POINTS points, or None; see `Report.local`."""
    k, d = min(K, hoods.k), map_dimension(Y, sphere)
    q = d if data.points is None else min(d, data.points.shape[1])
    if not 0 < q < k or (data.points is None and data.n > STORED):
        return None
    some = slice(None, None, -(-len(hoods.points) // LOCAL_POINTS))
    local = measure_local(data, Y, hoods.points[some], hoods.near_x[some, :k], q, sphere)
    return local if np.isfinite(local.scale).any() else None


def _class_errors(hoods: Neighborhoods, number: Array) -> tuple[Measured, Measured] | None:
    """Return how often the nearest neighbour has a different class, in the map and in the data.

    `number` contains the class index of each of the n points, −1 without a label. The nearest neighbour is then the
    nearest one with a label; points without any among their neighbours are left out, as are those without a label.
    Return None if fewer than two points remain.
    """
    own, labelled = number[hoods.points], int((number >= 0).sum())
    errors = []
    for near in (hoods.near_y, hoods.near_x):
        found = number[near]
        nearest = found[np.arange(len(found)), (found >= 0).argmax(axis=1)]
        used = (own >= 0) & (nearest >= 0)
        if used.sum() < 2:
            return None
        errors.append(Measured.over((nearest != own)[used].astype(np.float64), hoods.points[used], labelled))
    return errors[0], errors[1]


def _describe_data(X: Any, metric: Any) -> str:
    """Return a description of the data, such as "4 columns, euclidean distances" or "precomputed distances"."""
    shape = getattr(X, "shape", None)
    if shape is None:
        if not is_space(X):
            return "a table"
        named = type(X).__repr__ is not object.__repr__
        return f"the space {X!r}" if named else f"the space {type(X).__name__}(n={X.n})"
    if isinstance(metric, str) and metric == "precomputed":
        return "precomputed distances"
    name = metric if isinstance(metric, str) else "custom"
    return f"{plural(shape[1], 'column')}, {name} distances"


def _dimensions(d: int) -> str:
    return "one dimension" if d == 1 else f"{d} dimensions"


def _indent(heading: str, text: str) -> str:
    """Return wrapped text, indented to the right of its heading."""
    return textwrap.fill(text, WIDTH, initial_indent=f"{heading:{INDENT}}", subsequent_indent=" " * INDENT)

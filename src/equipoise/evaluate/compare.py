"""Compare several maps of the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.namespace import check_random_state
from .checks import metric_of, read_data, resolve_metric
from .given_map import in_geometries
from .report import Report, measure_map
from .report_table import as_html, as_text, comparison_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = "* closest to a perfect map; differences below twice the standard errors may be due to chance"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Reports on several maps of the same data.

    `print(comparison)` shows them as a table; `comparison[name]` is the report of one map.

    Attributes
    ----------
    reports : dict of str to Report
    """

    reports: dict[str, Report]

    def __getitem__(self, name: str) -> Report:
        return self.reports[name]

    def __str__(self) -> str:
        first = next(iter(self.reports.values()))
        about = f"{first.n:,} points: {first.about}; k = {first.k} neighbours"
        return f"{about}\n\n{as_text(*comparison_rows(self.reports))}\n\n{NOTE}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .figures.report_figure import as_image

        return (
            f"<div>{as_image(self.figure())}{as_html(*comparison_rows(self.reports))}"
            f"<p><small>{escape(NOTE)}</small></p></div>"
        )

    def figure(self) -> Figure:
        """Return a matplotlib figure of all maps, coloured by trust, and of their recall curves."""
        from .figures.report_figure import comparison_figure

        return comparison_figure(self.reports)


def compare(
    X: Any,
    maps: Mapping[str, Any] | Sequence[Any],
    labels: Any = None,
    *,
    k: Any = "auto",
    metric: Any = None,
    geometry: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Comparison:
    """Measure several maps of the same data, and return reports that print as one table.

    All maps are measured on the same points, pairs and triplets, so differences between them are more precise than the
    standard errors suggest.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    maps : mapping of str to map, or sequence of maps
        Each map is an array-like of shape (n, d), or a fitted method, whose `embedding_` is used. In a sequence, arrays
        are named by their position, "map 1", "map 2", …; methods are named after their class, followed by their
        position if several have the same class.
    labels : array-like of shape (n,), optional
        The class of each point.
    k : int or "auto", default="auto"
        Size of the neighbourhoods, as in `evaluate`.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of the fitted methods in `maps`,
        else "euclidean".
    geometry : {"plane", "sphere", "hyperbolic"} or Geometry, or mapping of str to them, optional
        The space of all maps that are bare coordinates, as in `evaluate`; or the space of each map, by its name. Maps
        without a space are measured along straight lines, and fitted methods by the distances of their own space.
    n_jobs : int, optional
        Number of threads for a dense table with Euclidean distances; by default all cores, or OMP_NUM_THREADS if that
        is fewer. Other data use one thread.
    random_state : int or RandomState, default=0
        Seed of the samples.

    Returns
    -------
    comparison : Comparison
    """
    named = dict(maps) if isinstance(maps, Mapping) else _name_maps(maps)
    if not named:
        raise ValueError("`maps` is empty; pass at least one map, as in compare(X, {'t-SNE': Y})")
    metric = _common_metric(X, named) if metric is None else metric
    X = read_data(X, metric)
    named = in_geometries(named, geometry)
    is_seed = isinstance(random_state, int | np.integer)
    seed = random_state if is_seed else check_random_state(random_state).randint(2**31 - 1)
    reports: dict[str, Report] = {}
    first = None
    for name, Y in named.items():
        try:
            report = measure_map(X, Y, labels, k, metric, first, n_jobs=n_jobs, random_state=seed)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        first = reports[str(name)] = report
    return Comparison(reports)


def _common_metric(X: Any, named: Mapping[str, Any]) -> Any:
    """Return the metric of all fitted methods among the maps, "euclidean" without any; raise if they differ."""
    metrics = {name: metric for name, Y in named.items() if (metric := metric_of(Y)) is not None}
    first = next(iter(metrics), None)
    for name, other in metrics.items():
        if first is not None and other != metrics[first]:
            raise ValueError(
                f"{first} and {name} were fitted with different metrics ({metrics[first]}; {other}); choose one for"
                f" all, such as metric={metrics[first]!r}"
            )
    return resolve_metric(None, None if first is None else named[first], X)


def _name_maps(maps: Sequence[Any]) -> dict[str, Any]:
    """Return the maps by name; a method whose class occurs only once gets the class name without a number."""
    kinds = [type(Y).__name__ if hasattr(Y, "embedding_") else "map" for Y in maps]
    unique = {kind for kind in kinds if kind != "map" and kinds.count(kind) == 1}
    names = [kind if kind in unique else f"{kind} {i}" for i, kind in enumerate(kinds, start=1)]
    return dict(zip(names, maps, strict=True))

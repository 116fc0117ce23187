"""Several maps of the same data, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from .report import Report, evaluate
from .report_table import as_html, as_text, side_by_side

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = "* nearest to a perfect map; a difference below twice the errors is none"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Reports on several maps of the same data: `reports[name]`, a table of all, and a figure."""

    reports: dict[str, Report]

    def __getitem__(self, name: str) -> Report:
        return self.reports[name]

    def __str__(self) -> str:
        first = next(iter(self.reports.values()))
        about = f"{first.n:,} points: {first.about}; k = {first.k} neighbours"
        return f"{about}\n\n{as_text(*side_by_side(self.reports))}\n\n{NOTE}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .figures.report_figure import as_image

        return (
            f"<div>{as_image(self.figure())}{as_html(*side_by_side(self.reports))}"
            f"<p><small>{escape(NOTE)}</small></p></div>"
        )

    def figure(self) -> Figure:
        """Return a matplotlib figure: each map by trust, and the recall curves of all."""
        from .figures.report_figure import comparison_figure

        return comparison_figure(self.reports)


def compare(
    X: Any,
    maps: Mapping[str, Any] | Sequence[Any],
    labels: Any = None,
    *,
    k: Any = "auto",
    metric: Any = "euclidean",
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Comparison:
    """Return the measures of several maps of X in one table.

    All are measured on the same points, pairs and triplets, so that their differences are surer than the errors say.

    Parameters
    ----------
    maps : name → map (n, d), or a sequence of maps, which are called "map 1", "map 2" …; a fitted method stands for its
        `embedding_`, and in a sequence for its name as well
    X, labels, k, metric, n_jobs, random_state : as in `evaluate`
    """
    named = dict(maps) if isinstance(maps, Mapping) else _named(maps)
    if not named:
        raise ValueError("maps is empty; give at least one map, as in compare(X, {'t-SNE': Y})")
    fixed = isinstance(random_state, int | np.integer)
    seed = random_state if fixed else check_random_state(random_state).randint(2**31 - 1)
    reports = {}
    for name, Y in named.items():
        try:
            reports[str(name)] = evaluate(X, _map(Y), labels, k=k, metric=metric, n_jobs=n_jobs, random_state=seed)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return Comparison(reports)


def _map(Y: Any) -> Any:
    return getattr(Y, "embedding_", Y)


def _named(maps: Sequence[Any]) -> dict[str, Any]:
    kinds = [type(Y).__name__ if hasattr(Y, "embedding_") else "map" for Y in maps]
    alone = {kind for kind in kinds if kind != "map" and kinds.count(kind) == 1}
    names = [kind if kind in alone else f"{kind} {i}" for i, kind in enumerate(kinds, start=1)]
    return dict(zip(names, maps, strict=True))

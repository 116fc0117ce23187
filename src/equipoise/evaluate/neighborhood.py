"""How well neighbourhoods survive the embedding. Each measure by itself; `Neighborhoods` serves several at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .checks import check_k, count_points
from .measured import Measured, RecallCurve
from .ranks import Neighborhoods

LARGEST = 200  # neighbours at which a recall curve ends unless told otherwise; chosen


def trustworthiness(
    X: Any, Y: Any, k: int = 15, *, metric: Any = "euclidean", n_jobs: int | None = None, random_state: Any = 0
) -> Measured:
    """Return how far the k nearest in the map are near in the data: 1 if all are among the k nearest, 0 at worst.

    Venna & Kaski 2001; docs/math.md, eq. (19). The values per point tell where false neighbours are.
    """
    return Neighborhoods(X, Y, k, metric=metric, n_jobs=n_jobs, random_state=random_state).trustworthiness(k)


def continuity(
    X: Any, Y: Any, k: int = 15, *, metric: Any = "euclidean", n_jobs: int | None = None, random_state: Any = 0
) -> Measured:
    """Return how far the k nearest in the data are near in the map: 1 if all are among the k nearest, 0 at worst.

    Venna & Kaski 2001; docs/math.md, eq. (19). The values per point tell where neighbours were torn apart.
    """
    return Neighborhoods(X, Y, k, metric=metric, n_jobs=n_jobs, random_state=random_state).continuity(k)


def neighbor_recall(
    X: Any, Y: Any, k: int = 10, *, metric: Any = "euclidean", n_jobs: int | None = None, random_state: Any = 0
) -> Measured:
    """Return the fraction of each point's k nearest neighbours in X that are among its k nearest in Y, on average."""
    return Neighborhoods(X, Y, k, metric=metric, n_jobs=n_jobs, random_state=random_state).recall(k)


def recall_curve(
    X: Any,
    Y: Any,
    ks: Sequence[int] | None = None,
    *,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> RecallCurve:
    """Return the neighbours kept at each of the sizes `ks`: by default 1, 2, 5, 10 … up to 200 or n − 1."""
    n = count_points(X)
    if ks is not None and len(ks) == 0:
        raise ValueError("ks is empty; list the sizes of neighbourhoods, or leave it out")
    largest = min(LARGEST, n - 1) if ks is None else max(check_k(k, n, "each of ks") for k in ks)
    hoods = Neighborhoods(X, Y, largest, metric=metric, n_jobs=n_jobs, random_state=random_state)
    return hoods.recall_curve(ks)


def preservation_ratio(
    X: Any,
    Y: Any,
    l: int,  # noqa: E741  the paper's letters
    m: int,
    *,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Measured:
    """Return how often the l-th to m-th neighbours stay in their place, relative to the first.

    Draganov & Dohn 2024, eq. (9), docs/math.md, eq. (20); NaN if no point keeps its nearest neighbour.
    """
    hoods = Neighborhoods(X, Y, m, metric=metric, n_jobs=n_jobs, random_state=random_state)
    return hoods.preservation_ratio(l, m)

"""Find nearest neighbours in data and map, and their ranks in the other space, for the measures of neighbourhoods."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from .._types import Array
from ..arrays.blocks import FIXED_RANKED, cache_bytes
from ..arrays.csr import run_on_threads
from ..linalg.pca import one_blas_thread
from ..methods.estimator import threads
from ..progress import advance_callback, stage
from .checks import check_embedding, check_k, check_pair
from .measured import Measured, RecallCurve
from .order import Buffer, Order, make_order
from .sample import sample_points

ROWS = 16  # minimum number of rows per block: each pass over the data serves at least this many


class Neighborhoods:
    """The k nearest neighbours of points in X and in Y, and their ranks in the other space (docs/math.md, section 19).

    The nearest of the n − 1 other points has rank 1; of points at the same distance, the one with the lower index comes
    first. Above 20,000 points, neighbours and ranks are found only for a random sample of points, but always among all
    points. They are computed when first needed, once for all measures and all sizes of neighbourhoods up to k.

    Parameters
    ----------
    X : table (n, D), dense or sparse; distances (n, n) if metric="precomputed"; or a `spaces.MetricSpace`
    Y : array-like, shape (n, d), or a fitted method
        The map; in a curved space, such as a torus, neighbours are those of a fitted method's geometry.
    k : int
        Largest size of a neighbourhood.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    n_jobs : int, default=None
        Number of threads for a dense table with Euclidean distances; by default all cores, or OMP_NUM_THREADS if that
        is fewer. Other data use one thread.
    random_state : int, RandomState or None, default=0
        Seed of the sample.

    Attributes
    ----------
    points : array of int, shape (m,)
        The measured points, in increasing order.
    near_x, near_y : array of int32, shape (m, k)
        The k nearest neighbours of each measured point in X and in Y, nearest first.
    rank_x, rank_y : array of int32, shape (m, k)
        The ranks of `near_y` in X, and of `near_x` in Y.
    """

    _known_near_x: Array | None = None

    def __init__(self, X: Any, Y: Any, k: int, *, metric: Any = None, n_jobs: int | None = None, random_state: Any = 0):
        data, embedding = check_pair(X, Y, metric)
        self.n = data.n
        self.k = check_k(k, self.n)
        self.points = sample_points(self.n, random_state)
        # A user-defined metric may not be thread-safe, and its distances may depend on the block.
        self._n_threads = 1 if data.points is None else threads(n_jobs)
        self._distances_at_once = FIXED_RANKED if data.points is None else cache_bytes() // 4  # float32
        self._in_x, self._in_y = make_order(data), make_order(embedding)

    def of_map(self, Y: Any) -> Neighborhoods:
        """Return the neighbourhoods of another map Y (n, d) of the same data; `near_x` is not computed again."""
        embedding = check_embedding(Y)
        if embedding.n != self.n:
            raise ValueError(
                f"X has {self.n:,} points and Y has {embedding.n:,}; they must be the same points, in the same order"
            )
        other = copy(self)
        for name in ("_from_x", "_from_y"):
            other.__dict__.pop(name, None)
        other._in_y = make_order(embedding)
        other._known_near_x = self.near_x
        return other

    @property
    def near_x(self) -> Array:
        return self._from_x[0]

    @property
    def near_y(self) -> Array:
        return self._from_y[0]

    @property
    def rank_x(self) -> Array:
        return self._from_y[1]

    @property
    def rank_y(self) -> Array:
        return self._from_x[1]

    @cached_property
    def _from_x(self) -> tuple[Array, Array]:
        return self._compute(self._in_x, self._in_y, self._known_near_x)

    @cached_property
    def _from_y(self) -> tuple[Array, Array]:
        return self._compute(self._in_y, self._in_x)

    def _compute(self, space: Order, other_space: Order, known: Array | None = None) -> tuple[Array, Array]:
        """Return the k nearest points in one space and their ranks in the other, each (m, k).

        If the nearest points are already `known`, they are not computed again.
        """
        ranks = np.empty((len(self.points), self.k), np.int32)
        near = np.empty_like(ranks) if known is None else known
        stage("neighbours and ranks", len(self.points))
        advance = advance_callback()
        m, turns = len(self.points), self._n_threads * max(ROWS, self._distances_at_once // self.n)
        step = -(-m // (self._n_threads * -(-m // turns)))  # equally many blocks per thread, of about equal size

        def compute_blocks(first: int) -> None:
            buffer = Buffer(step, self.n)
            for start in range(first * step, m, self._n_threads * step):
                part = slice(start, start + step)
                rows = self.points[part]
                if known is None:
                    near[part] = space.nearest(rows, self.k, buffer)
                ranks[part] = other_space.ranks(rows, near[part], buffer)
                advance(len(rows))

        # Each row is computed by one thread: the ranks do not depend on the number of threads.
        with one_blas_thread():
            run_on_threads(compute_blocks, range(self._n_threads), self._n_threads)
        return near, ranks

    def trustworthiness(self, k: int) -> Measured:
        """Return the mean over the points of 1 − Σ_j max(0, r_X(j) − k) / w (docs/math.md, eq. (19)).

        The sum runs over the k nearest points j in Y; r_X(j) is the rank of j in X, and w the largest possible sum.
        """
        return self._penalty(self.rank_x, k)

    def continuity(self, k: int) -> Measured:
        """Return the mean over the points of 1 − Σ_j max(0, r_Y(j) − k) / w (docs/math.md, eq. (19)).

        The sum runs over the k nearest points j in X; r_Y(j) is the rank of j in Y, and w the largest possible sum.
        """
        return self._penalty(self.rank_y, k)

    def recall(self, k: int) -> Measured:
        """Return the mean fraction of a point's k nearest points in X that are among its k nearest in Y."""
        k = self._check(k)
        return self._mean((self.rank_x[:, :k] <= k).mean(axis=1))

    def recall_curve(self, ks: Any = None) -> RecallCurve:
        """Return the recall for each of the sizes `ks`, by default 1, 2, 5, 10, 20, 50 … up to k."""
        sizes = default_sizes(self.k) if ks is None else [self._check(k) for k in ks]
        recalls = [self.recall(k) for k in sizes]
        ks = np.array(sizes, dtype=np.int64)
        errors = np.array([recall.error for recall in recalls])
        return RecallCurve(ks, np.array(recalls, dtype=np.float64), errors, ks / (self.n - 1), self.points)

    def preservation_ratio(self, l: int, m: int) -> Measured:  # noqa: E741  letters of the paper
        """Return Σ_{k=l}^{m} B(k) / ((m − l) B(1)) (Draganov & Dohn 2024, eq. (9)).

        B(k) is the fraction of points whose k-th neighbour is the same in X and in Y. The ratio is NaN if B(1) = 0.
        """
        check_ranks(l, m, self.n)
        self._check(m, "m")
        same = self.rank_x[:, :m] == np.arange(1, m + 1)
        later, first = same[:, l - 1 :].sum(axis=1) / (m - l), same[:, 0].astype(np.float64)
        if not first.any():
            return Measured(np.nan, np.nan, self.points)
        ratio = float(later.mean() / first.mean())
        return Measured(ratio, self._mean(later - ratio * first).error / first.mean(), self.points)  # the delta method

    def _penalty(self, ranks: Array, k: int) -> Measured:
        k = self._check(k)
        beyond = np.maximum(ranks[:, :k] - np.int64(k), 0).sum(axis=1)
        return self._mean(1 - beyond / max(1, worst_penalty(self.n, k)))

    def _mean(self, values: Array) -> Measured:
        return Measured.over(values, self.points, self.n)

    def _check(self, k: int, name: str = "k") -> int:
        k = check_k(k, self.n, name)
        if k > self.k:
            raise ValueError(
                f"{name}={k} is too large for Neighborhoods created with k={self.k}; create Neighborhoods(X, Y, k={k})"
            )
        return k


def check_ranks(l: int, m: int, n: int) -> None:  # noqa: E741  letters of the paper
    """Raise ValueError unless l and m are ranks of neighbours of n points, and l is smaller than m."""
    if not check_k(l, n, "l") < check_k(m, n, "m"):
        raise ValueError(f"l must be smaller than m, got l={l} and m={m}")


def worst_penalty(n: int, k: int) -> int:
    """Return the largest possible sum of max(0, r − k) over k neighbours with different ranks r ≤ n − 1."""
    wrong = min(k, n - 1 - k)
    return wrong * (n - 1 - k) - wrong * (wrong - 1) // 2


def default_sizes(k: int) -> list[int]:
    """Return 1, 2, 5, 10, 20, 50 … up to k."""
    sizes = [step * 10**power for power in range(len(str(k))) for step in (1, 2, 5)]
    return [size for size in sizes if size <= k]

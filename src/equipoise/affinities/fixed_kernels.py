"""Affinities given by one function p(d) of the distance for all points, such as a Gaussian of fixed width.

P_ij = p(d_ij) / Σ_{k≠l} p(d_kl), or p_{j|i} = p(d_ij) / Σ_k p(d_ik) for rows (Lin et al. 2024, eq. 10, 1 and 12;
docs/math.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from .._plural import plural
from .._suggest import described
from .._tags import tagged
from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import entry_rows, make_csr
from ..arrays.namespace import require
from ..inputs import Input
from ..kernels import Kernel
from ..linalg.landmark_choice import choose
from ..progress import stage
from .perplexity import of_rows

GRID = np.logspace(-6, 6, 121)  # distances at which a user-defined p(d) is checked
PROBES = 64  # points on which the affinity beyond the nearest neighbours is estimated; chosen
NEGLIGIBLE = 0.01  # fraction of the affinity that may be left out without a warning; chosen

Affinity = Any  # a name, `FixedWidth`, a Kernel or a function p(d)
Scaled = Callable[[Matrix, type[np.floating]], Matrix]  # `of_rows` or `of_total` in perplexity.py


@tagged("affinities.FixedWidth")
@dataclass(frozen=True)
class FixedWidth:
    """Gaussian affinities p(d) = exp(−d²/2σ²) with the same width σ for all points.

    Lin et al. 2024, eq. 12, p = exp(−d²), is σ = √½. Use it as `TSNE(affinity=FixedWidth(2.0))`.

    Parameters
    ----------
    sigma : float
        The width σ, in units of the distance.
    """

    sigma: float

    def __post_init__(self) -> None:
        require(self.sigma, "sigma", "> 0", lambda sigma: sigma > 0)

    def log_value(self, d: Array) -> Array:
        """Return log p(d)."""
        return -0.5 * np.square(d / float(self.sigma))


def check_affinity(affinity: Any) -> None:
    """Raise ValueError unless `affinity` is `FixedWidth`, a Kernel or a function p(d).

    A function must take an array of distances and return finite, nonnegative values that do not increase with d.
    """
    if isinstance(affinity, FixedWidth | Kernel):
        return
    if not callable(affinity) or isinstance(affinity, type):
        raise ValueError(
            "affinity must be a name, a function p(d) of distances, a kernel of equipoise.kernels or"
            f" affinities.FixedWidth(sigma), got {described(affinity)}"
        )
    values = _call(affinity, GRID)
    rises = np.flatnonzero(np.diff(values) > 1e-9 * values[:-1])
    if rises.size:
        i = int(rises[0])
        raise ValueError(
            f"the affinity p(d) must not increase with the distance, but it rises from {values[i]:.3g} at"
            f" d = {GRID[i]:.3g} to {values[i + 1]:.3g} at d = {GRID[i + 1]:.3g}"
        )
    if not values.any():
        raise ValueError("the affinity p(d) is 0 at all distances from 1e-6 to 1e6; it must be positive near 0")


def log_affinity(affinity: Any, d: Array) -> Array:
    """Return log p(d), −∞ where p is 0, for distances d of any shape."""
    if isinstance(affinity, FixedWidth):
        return affinity.log_value(d)
    with np.errstate(divide="ignore"):
        return affinity.log_value(np.square(d)) if isinstance(affinity, Kernel) else np.log(_call(affinity, d))


def _call(p: Callable[[Array], Any], d: Array) -> Array:
    """Return p(d) as float64; raise ValueError unless it has the shape of d and is finite and nonnegative."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(p(d.copy()), dtype=np.float64)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise ValueError(
            f"the affinity p(d) fails for an array of distances: {error}. Write it elementwise, with array functions"
            " such as numpy.where instead of if statements"
        ) from error
    if values.shape != d.shape:
        raise ValueError(
            f"the affinity p(d) must return one number per distance; for an array of shape {d.shape} it returned"
            f" {values.shape}"
        )
    wrong = ~(values >= 0) | np.isinf(values)
    if wrong.any():
        at = float(d[wrong][0])
        also = " (two points coincide)" if at == 0 else ""
        raise ValueError(f"the affinity p({at:.3g}) = {values[wrong][0]}{also}, but it must be finite and nonnegative")
    return values


@tagged("affinities.OfDistance")
@dataclass
class OfDistance:
    """Rule that computes affinities from one function p(d) for all points.

    If `few` is True, `rows` keeps the k nearest neighbours of each point, and warns if they have less than 99 % of the
    affinity of all pairs.

    Parameters
    ----------
    affinity : FixedWidth, Kernel or callable
        The function p(d); a kernel is p(d) = k(d²).
    scaled : callable
        `of_rows` scales each row to the sum 1, as in SNE; `of_total` scales all pairs together (Lin et al. 2024, eq.
        10).
    k : int
        Number of neighbours of each point.
    n_threads : int
    """

    affinity: Any
    scaled: Scaled
    k: int
    n_threads: int
    _width: int = field(default=0, init=False)  # number of fitted points that attract a new one

    @property
    def by_rows(self) -> bool:
        """Whether each row is scaled to the sum 1."""
        return self.scaled is of_rows

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        self._width = self.k if few else data.n
        if not (few or data.sparse):
            return self._dense(data, dtype), data.recall
        D2, recall = data.measured_neighbors(self.k, self.n_threads)
        stage("affinities")
        log_p = log_affinity(self.affinity, data.unscaled(D2.data))
        if self.by_rows:
            P = self._rows_of(D2, log_p)
        else:
            P = make_csr(np.exp(log_p - self._largest(log_p)), D2.indices, D2.indptr, D2.shape).sorted_indices()
            P = sparse.csr_matrix(P.maximum(P.T))  # a pair is kept if one point is a neighbour of the other
            _warn_isolated(np.asarray(P.sum(axis=1)).ravel())
        if not data.sparse:
            self._warn_if_truncated(data)
        return self.scaled(P, dtype), recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        nearby = data.nearest(X, self._width, self.n_threads)
        log_p = log_affinity(self.affinity, data.unscaled(nearby.d2.data))
        return of_rows(self._rows_of(nearby.d2, log_p), np.float64), nearby.twins

    def _dense(self, data: Input, dtype: type[np.floating]) -> Array:
        log_p = log_affinity(self.affinity, data.unscaled(data.squared()))
        stage("affinities")
        np.fill_diagonal(log_p, -np.inf)
        largest = log_p.max(axis=1, keepdims=True) if self.by_rows else np.full((1, 1), self._largest(log_p))
        _require_reachable(np.isfinite(largest[:, 0]))
        P = np.exp(np.subtract(log_p, largest, out=log_p), out=log_p)
        if not self.by_rows:
            _warn_isolated(P.sum(axis=1))
        return np.asarray(self.scaled(P, dtype))

    @staticmethod
    def _largest(log_p: Array) -> float:
        """Return the largest log p, which is subtracted before exp: p may underflow, its ratios must not."""
        largest = float(log_p.max(initial=-np.inf))
        if not np.isfinite(largest):
            raise ValueError("the affinity p(d) is 0 for all pairs of points; use a wider p(d), or rescale the data")
        return largest

    @staticmethod
    def _rows_of(D2: Matrix, log_p: Array) -> Matrix:
        """Return p_{j|i} on the pattern of CSR D2, with the largest entry of each row scaled to 1."""
        counts = np.diff(D2.indptr)
        largest = np.full(D2.shape[0], -np.inf)
        np.maximum.at(largest, entry_rows(D2), log_p)
        _require_reachable(np.isfinite(largest))
        return make_csr(np.exp(log_p - np.repeat(largest, counts)), D2.indices, D2.indptr, D2.shape)

    def _warn_if_truncated(self, data: Input) -> None:
        """Warn if, for sampled points, the k nearest neighbours hold too small a share of the affinity."""
        if self.k >= data.n - 1:
            return
        probes = choose(data.n, min(PROBES, data.n), np.random.RandomState(0))
        log_p = log_affinity(self.affinity, data.unscaled(data.squared_to_all(data.rows(probes))))
        log_p[np.arange(len(probes)), probes] = -np.inf
        shift = log_p.max(axis=1, keepdims=True) if self.by_rows else log_p.max()
        p = np.exp(log_p - np.where(np.isfinite(shift), shift, 0.0))
        kept = np.partition(p, data.n - self.k, axis=1)[:, data.n - self.k :]
        share = float(kept.sum() / p.sum()) if not self.by_rows else float(np.mean(kept.sum(axis=1) / p.sum(axis=1)))
        if share < 1 - NEGLIGIBLE:
            warn(
                f"the {self.k} nearest neighbours of a point have only {share:.0%} of the affinity p(d), estimated on"
                f" {plural(len(probes), 'point')}, and the rest is left out; increase perplexity (3 · perplexity"
                ' neighbours are used), choose a narrower p(d), or use engine="exact"'
            )


def _require_reachable(reachable: Array) -> None:
    """Raise ValueError, naming the first row, unless every row has a positive affinity."""
    if not reachable.all():
        raise ValueError(
            f"row {int(reachable.argmin())} has no affinity to any other point, because p(d) is 0 at all its distances;"
            " use a wider p(d), or remove the row"
        )


def _warn_isolated(sums: Array) -> None:
    """Warn about points without affinity to any other point, which nothing attracts."""
    if (sums > 0).all():
        return
    count, first = int((sums <= 0).sum()), f"row {int((sums <= 0).argmax())}"
    warn(
        f"{f'{first} has' if count == 1 else f'{count} rows (the first is {first}) have'} no affinity to any other"
        " point, because p(d) is too small at all distances, so that nothing attracts"
        f" {'it' if count == 1 else 'them'}; use a wider p(d), or a perplexity",
    )

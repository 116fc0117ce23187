"""Computes metric stress over all pairs, or over the pairs of a sparse matrix (docs/math.md, section 14)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ... import _core
from ..._types import Array, Matrix
from ...arrays.csr import compiled_pattern, entry_values

NONE = np.empty(0, np.float32)  # no weights: all 1


class Slope(NamedTuple):
    """The loss at a map Y, half its gradient G, and the stiffness M; a step of majorisation leads from Y to Y − G/M."""

    loss: float
    half_gradient: Array  # G, (n, d)
    stiffness: Array  # M, (n, 1) or (1, 1): the diagonal of a matrix ≥ V, the Laplacian of the weights


class Stress(Protocol):
    """A stress of maps Y (n, d): metric stress σ(Y) = Σ_{i<j} w_ij (d_ij − δ_ij)², or ordinal stress (ordinal.py).

    d_ij are the distances in the map, δ_ij the given dissimilarities and w_ij their weights. V is the Laplacian of the
    weights: (V Y)_i = Σ_j w_ij (y_i − y_j).
    """

    def slope(self, Y: Array) -> Slope:
        """Return the loss, half its gradient and the stiffness at Y (n, d), float32 or float64."""
        ...

    def attraction(self, Y: Array) -> Array:
        """Return the attractive force, (n, d): −2 V Y for metric stress."""
        ...

    def scale(self, Y: Array) -> float:
        """Return a factor by which to scale Y; for metric stress, the factor that gives the lowest loss."""
        ...


class Metric:
    """Base class of metric stress; subclasses define `slope` and `laplacian`."""

    def slope(self, Y: Array) -> Slope:
        raise TypeError(f"{type(self).__name__} must define slope(Y)")

    def laplacian(self, Y: Array) -> Array:
        """Return V Y, with rows Σ_j w_ij (y_i − y_j)."""
        raise TypeError(f"{type(self).__name__} must define laplacian(Y)")

    def attraction(self, Y: Array) -> Array:
        return -2 * self.laplacian(Y)

    def scale(self, Y: Array) -> float:
        # Σ w d² = tr YᵀVY, and Σ w δ d = tr YᵀB(Y)Y = tr Yᵀ(V Y − G).
        Y = np.ascontiguousarray(Y, dtype=np.float32)
        squares, residual = float((Y * self.laplacian(Y)).sum()), float((Y * self.slope(Y).half_gradient).sum())
        return (squares - residual) / squares if squares > 0 else 1.0


class AllPairs(Metric):
    """Metric stress over all pairs i < j.

    `delta` (float32) and `weights` (empty if all are 1) are condensed arrays, as SciPy's pdist returns them.
    """

    def __init__(self, delta: Array, n: int, n_threads: int, weights: Array = NONE):
        self.delta, self.n, self.weights, self.n_threads = delta, n, weights, n_threads
        # V = nI − 11ᵀ ≤ nI for unit weights: the step of SMACOF. Else V ≤ 2 diag(Σ_j w_ij), by Gershgorin's circles.
        self.stiffness = np.full((1, 1), float(n)) if not len(weights) else 2 * self._row_sums()[:, None]

    def _row_sums(self) -> Array:
        """Return Σ_j w_ij, (n,), from the condensed weights."""
        sums, end = np.zeros(self.n), 0
        for i in range(self.n - 1):
            row = self.weights[end : end + self.n - 1 - i].astype(np.float64)
            sums[i] += row.sum()
            sums[i + 1 :] += row
            end += len(row)
        return sums

    def slope(self, Y: Array) -> Slope:
        return Slope(*self._pass(self.delta, Y), self.stiffness)

    def _pass(self, delta: Array, Y: Array) -> tuple[float, Array]:
        """Return the loss and half its gradient for the dissimilarities `delta`."""
        G = np.empty(Y.shape)
        return _core.stress_stored(delta, self.weights, np.ascontiguousarray(Y), G, self.n_threads), G

    def laplacian(self, Y: Array) -> Array:
        Y = np.asarray(Y, dtype=np.float64)
        if not len(self.weights):
            return len(Y) * Y - Y.sum(axis=0)
        return self._pass(np.zeros(len(self.weights), np.float32), Y)[1]  # with δ = 0, G = V Y


class FromPoints(Metric):
    """Metric stress where δ_ij is the Euclidean distance between rows i and j of X (n, D), which is not stored."""

    def __init__(self, X: Array, n_threads: int):
        self.X, self.n_threads = np.ascontiguousarray(X, dtype=np.float32), n_threads
        self.stiffness = np.full((1, 1), float(len(X)))

    def slope(self, Y: Array) -> Slope:
        G = np.empty(Y.shape)
        loss = _core.stress_points(self.X, np.ascontiguousarray(Y), G, self.n_threads)
        return Slope(loss, G, self.stiffness)

    def laplacian(self, Y: Array) -> Array:
        Y = np.asarray(Y, dtype=np.float64)
        return len(Y) * Y - Y.sum(axis=0)


class Listed(Metric):
    """Metric stress over the pairs stored in a symmetric CSR matrix `weights`; `delta` holds δ in the same order."""

    def __init__(self, delta: Array, weights: Matrix, n_threads: int):
        self.n_threads, self.weights = n_threads, weights
        self.delta = delta.astype(np.float32, copy=False)
        self._values = entry_values(weights).astype(np.float32, copy=False)
        self._row_sums = np.asarray(weights.sum(axis=1, dtype=np.float64)).reshape(-1, 1)
        self.stiffness = 2 * self._row_sums

    def slope(self, Y: Array) -> Slope:
        stress, G = np.empty(len(Y)), np.empty(Y.shape)
        Y = np.ascontiguousarray(Y)
        _core.stress_listed(compiled_pattern(self.weights), self.delta, self._values, Y, stress, G, self.n_threads)
        return Slope(float(stress.sum()) / 2, G, self.stiffness)

    def laplacian(self, Y: Array) -> Array:
        Y = np.asarray(Y, dtype=np.float64)
        return self._row_sums * Y - self.weights @ Y

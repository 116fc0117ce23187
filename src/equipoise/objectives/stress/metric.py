"""Computes stress over all pairs, or over the pairs of a sparse matrix (docs/math.md, section 14).

A pair with distance d in the map and dissimilarity δ has a residual e: d − δ ("absolute", metric stress), (d − δ)/δ
("relative") or log(d/δ) ("logarithmic").
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from ... import _core
from ..._types import Array, Matrix
from ...arrays.blocks import FIXED_ENTRIES
from ...arrays.csr import compiled_pattern, entry_values

NONE: Array = np.empty(0, np.float32)  # no weights: all 1


class Slope(NamedTuple):
    """The loss at a map Y, half its gradient G, and the stiffness M; a step of majorisation leads from Y to Y − G/M."""

    loss: float
    half_gradient: Array  # G, (n, d)
    stiffness: Array  # M, (n, 1) or (1, 1): the diagonal of a matrix ≥ V, the Laplacian of the weights


class Misfit(NamedTuple):
    """What is summed over pairs with residuals e and weights w: w e², or (w e/unit)^p with p = 2^doublings.

    Attributes
    ----------
    residual : {"absolute", "relative", "logarithmic"}
        e = d − δ, (d − δ)/δ or log(d/δ).
    doublings : int
        0 for w e².
    unit : float
    stretched : bool
        Whether only pairs with e > 0 count; these attract each other.
    largest : bool
        Whether the result is the largest w |e| instead of a sum, without a gradient.
    """

    residual: str = "absolute"
    doublings: int = 0
    unit: float = 1.0
    stretched: bool = False
    largest: bool = False

    def native(self) -> Any:
        """Return the misfit for the compiled core."""
        return getattr(_core.Misfit, self.residual)(self.doublings, self.unit, self.stretched, self.largest)


class Stress(Protocol):
    """A stress of maps Y (n, d): a sum over pairs (`Metric`), ordinal stress, or the norm of the worst pairs.

    Attributes
    ----------
    dtype : type
        float32 or float64, the precision in which the steps of an optimisation compute distances in the map.
    majorized : bool
        Whether the step −G/M never increases the loss.
    """

    @property
    def dtype(self) -> Any: ...

    @property
    def majorized(self) -> bool: ...

    def slope(self, Y: Array) -> Slope:
        """Return the loss, half its gradient and the stiffness at Y (n, d), float32 or float64."""
        ...

    def attraction(self, Y: Array) -> Array:
        """Return the attractive force, (n, d): −2 V Y for metric stress."""
        ...

    def scale(self, Y: Array) -> float:
        """Return a factor by which to scale Y; for a sum over pairs, the factor that gives the lowest loss."""
        ...


class Metric:
    """Base class of Σ_{i<j} w_ij e_ij² for residuals e of the distances; subclasses define `sums`.

    The residual is "absolute", e = d − δ, unless an instance has another in its attribute `residual`. For absolute and
    relative residuals, e² = (d − δ)² or (d − δ)²/δ², let v = w or w/δ² be the weight of (d − δ)²; V is the Laplacian
    of these weights: (V Y)_i = Σ_j v_ij (y_i − y_j).
    """

    residual = "absolute"
    stiffness: Array

    @property
    def dtype(self) -> Any:
        return np.float64 if self.residual == "logarithmic" else np.float32  # small distances count most

    @property
    def majorized(self) -> bool:
        return self.residual != "logarithmic"

    def sums(self, Y: Array, misfit: Misfit) -> tuple[float, Array]:
        """Return the sum of a misfit over the pairs, and half its gradient (1/p of it for p-th powers)."""
        raise TypeError(f"{type(self).__name__} must define sums(Y, misfit)")

    def largest(self, Y: Array) -> float:
        """Return the largest w |e|."""
        raise TypeError(f"{type(self).__name__} must define largest(Y)")

    def total_weight(self) -> float:
        """Return Σ_{i<j} w_ij."""
        raise TypeError(f"{type(self).__name__} must define total_weight()")

    def with_residual(self, residual: str) -> Metric:
        """Return the stress of the same pairs with another residual, without a stiffness; arrays are shared."""
        other = object.__new__(type(self))
        vars(other).update({name: value for name, value in vars(self).items() if name not in ("residual", "stiffness")})
        other._set_residual(residual)
        return other

    def _set_residual(self, residual: str) -> None:
        if residual != "absolute":  # checkpoints of version 0.1.0 contain hashes of instances without the attribute
            self.residual = residual

    def slope(self, Y: Array) -> Slope:
        return Slope(*self.sums(Y, Misfit(self.residual)), self.stiffness)

    def laplacian(self, Y: Array) -> Array:
        """Return V Y for absolute and relative residuals, with rows Σ_j v_ij (y_i − y_j)."""
        # G = V Y − B(Y) Y, and B(Y) Y does not change if Y is scaled.
        Y = np.asarray(Y, dtype=np.float64)
        return self.slope(2 * Y).half_gradient - self.slope(Y).half_gradient

    def attraction(self, Y: Array) -> Array:
        if self.residual == "logarithmic":  # the force of the pairs with d > δ
            return -2 * self.sums(Y, Misfit(self.residual, stretched=True))[1]
        return -2 * self.laplacian(Y)

    def scale(self, Y: Array) -> float:
        Y = np.ascontiguousarray(Y, dtype=np.float32)
        residual = float((Y * self.slope(Y).half_gradient).sum())
        if self.residual == "logarithmic":  # Y · G = Σ w e, which is 0 at the best scale
            return float(np.exp(-residual / self.total_weight()))
        # Σ v d² = tr YᵀVY, and Σ v δ d = tr YᵀB(Y)Y = tr Yᵀ(V Y − G).
        squares = float((Y * self.laplacian(Y)).sum())
        return (squares - residual) / squares if squares > 0 else 1.0


class AllPairs(Metric):
    """Stress over all pairs i < j.

    `delta` (float32) and `weights` (empty if all are 1) are condensed arrays, as SciPy's pdist returns them.
    """

    def __init__(self, delta: Array, n: int, n_threads: int, weights: Array = NONE, residual: str = "absolute"):
        self.delta, self.n, self.weights, self.n_threads = delta, n, weights, n_threads
        self._set_residual(residual)
        # V = nI − 11ᵀ ≤ nI for unit weights: the step of SMACOF. Else V ≤ 2 diag(Σ_j w_ij), by Gershgorin's circles.
        plain = self.residual == "absolute" and not len(weights)
        self.stiffness = np.full((1, 1), float(n)) if plain else 2 * self._row_sums()[:, None]

    def _row_sums(self) -> Array:
        """Return Σ_j v_ij, (n,)."""
        sums, end = np.zeros(self.n), 0
        for i in range(self.n - 1):
            part = slice(end, end + self.n - 1 - i)
            row = self.weights[part].astype(np.float64) if len(self.weights) else np.ones(part.stop - end)
            if self.residual != "absolute":
                row /= np.square(self.delta[part], dtype=np.float64)
            sums[i] += row.sum()
            sums[i + 1 :] += row
            end = part.stop
        return sums

    def total_weight(self) -> float:
        return float(self.weights.sum(dtype=np.float64)) if len(self.weights) else self.n * (self.n - 1) / 2

    def sums(self, Y: Array, misfit: Misfit) -> tuple[float, Array]:
        return self._pass(self.delta, Y, misfit.native())

    def largest(self, Y: Array) -> float:
        return self._pass(self.delta, Y, Misfit(self.residual, largest=True).native())[0]

    def _pass(self, delta: Array, Y: Array, misfit: Any) -> tuple[float, Array]:
        G = np.empty(Y.shape)
        Y = np.ascontiguousarray(Y)
        return _core.stress_stored(delta, self.weights, Y, G, self.n_threads, misfit), G

    def laplacian(self, Y: Array) -> Array:
        Y = np.asarray(Y, dtype=np.float64)
        if self.residual != "absolute":
            return super().laplacian(Y)
        if not len(self.weights):
            return len(Y) * Y - Y.sum(axis=0)
        return self._pass(np.zeros(len(self.weights), np.float32), Y, Misfit().native())[1]  # with δ = 0, G = V Y


class FromPoints(Metric):
    """Stress where δ_ij is the Euclidean distance between rows i and j of X (n, D), which is not stored."""

    def __init__(self, X: Array, n_threads: int, residual: str = "absolute"):
        self.X, self.n_threads = np.ascontiguousarray(X, dtype=np.float32), n_threads
        self._set_residual(residual)
        plain = self.residual == "absolute"
        self.stiffness = np.full((1, 1), float(len(X))) if plain else 2 * self._row_sums()[:, None]

    def _row_sums(self) -> Array:
        """Return Σ_j 1/δ_ij², (n,)."""
        X, sums = self.X.astype(np.float64), np.empty(len(self.X))
        height = max(1, FIXED_ENTRIES // len(X))
        for start in range(0, len(X), height):
            d2 = cdist(X[start : start + height], X, "sqeuclidean")
            d2[np.arange(len(d2)), start + np.arange(len(d2))] = np.inf
            sums[start : start + height] = (1 / d2).sum(axis=1)
        return sums

    def total_weight(self) -> float:
        return len(self.X) * (len(self.X) - 1) / 2

    def sums(self, Y: Array, misfit: Misfit) -> tuple[float, Array]:
        return self._pass(Y, misfit.native())

    def largest(self, Y: Array) -> float:
        return self._pass(Y, Misfit(self.residual, largest=True).native())[0]

    def _pass(self, Y: Array, misfit: Any) -> tuple[float, Array]:
        G = np.empty(Y.shape)
        return _core.stress_points(self.X, np.ascontiguousarray(Y), G, self.n_threads, misfit), G

    def laplacian(self, Y: Array) -> Array:
        Y = np.asarray(Y, dtype=np.float64)
        return len(Y) * Y - Y.sum(axis=0) if self.residual == "absolute" else super().laplacian(Y)


class Listed(Metric):
    """Stress over the pairs stored in a symmetric CSR matrix `weights`; `delta` holds δ in the same order."""

    def __init__(self, delta: Array, weights: Matrix, n_threads: int, residual: str = "absolute"):
        self.n_threads, self.weights = n_threads, weights
        self.delta = delta.astype(np.float32, copy=False)
        self._values = entry_values(weights).astype(np.float32, copy=False)
        self._set_residual(residual)
        self._row_sums = np.asarray(weights.sum(axis=1, dtype=np.float64)).reshape(-1, 1)
        self.stiffness = 2 * (self._row_sums if self.residual == "absolute" else self._relative_row_sums())

    def _relative_row_sums(self) -> Array:
        """Return Σ_j w_ij/δ_ij², (n, 1)."""
        scaled = self.weights.copy()
        scaled.data = entry_values(self.weights).astype(np.float64) / np.square(self.delta, dtype=np.float64)
        return np.asarray(scaled.sum(axis=1)).reshape(-1, 1)

    def total_weight(self) -> float:
        return float(self._row_sums.sum()) / 2

    def sums(self, Y: Array, misfit: Misfit) -> tuple[float, Array]:
        stress, G = self._pass(Y, misfit.native())
        return float(stress.sum()) / 2, G

    def largest(self, Y: Array) -> float:
        return float(self._pass(Y, Misfit(self.residual, largest=True).native())[0].max())

    def _pass(self, Y: Array, misfit: Any) -> tuple[Array, Array]:
        """Return the result for the pairs of each point, (n,), and half the gradient of the total."""
        stress, G = np.empty(len(Y)), np.empty(Y.shape)
        pattern, Y = compiled_pattern(self.weights), np.ascontiguousarray(Y)
        _core.stress_listed(pattern, self.delta, self._values, Y, stress, G, self.n_threads, misfit)
        return stress, G

    def laplacian(self, Y: Array) -> Array:
        Y = np.asarray(Y, dtype=np.float64)
        return self._row_sums * Y - self.weights @ Y if self.residual == "absolute" else super().laplacian(Y)

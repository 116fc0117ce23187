"""Divergences between the affinities P of the data and Q of the map, both with the sum 1 (docs/math.md, section 1).

Most are f-divergences E = Σ_ij P_ij f(Q_ij / P_ij), f convex with f(1) = 0 (Lin et al. 2024, eq. 6). `Renyi`, `Beta`,
`Gamma`, `NeRV` and `SymmetricKL` are not, or not exactly; every divergence computes itself by `between(P, Q)`.

The α family is computed from s = (1−α)/2 and the deformed logarithm ln_e(t) = (t^e − 1)/e, ln_0 = log; for example,
f'_α(t) = ln_{−s}(t). These formulas also hold in the limits α = ±1, without cancellation. All formulas accept NumPy,
PyTorch and CuPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ._tags import tagged
from ._types import Array
from .arrays.namespace import array_namespace, at_least, is_finite, is_positive

__all__ = [
    "KL",
    "Alpha",
    "Beta",
    "ChiSquare",
    "Divergence",
    "Gamma",
    "Hellinger",
    "JensenShannon",
    "NeRV",
    "Renyi",
    "SymmetricKL",
]

TINY = np.finfo(np.float64).tiny  # lower bound of t = Q/P, which may underflow


def deformed_log(log_t: Array, e: float) -> Array:
    """Return ln_e(t) = (t^e − 1)/e from log t; at e = 0 this is its limit, log t."""
    return log_t if e == 0 else array_namespace(log_t).expm1(e * log_t) / e


NEAR_LOG = 1 / 16  # |e| below which (t^e − 1)/e is computed with expm1; above, t^e / e is accurate enough


def antiderivative(log_k: Any, e: float) -> Any:
    """Return ψ with dψ/dk = k^(e−1), from log k: ln_e(k) for |e| < NEAR_LOG, otherwise k^e / e."""
    if abs(e) < NEAR_LOG:
        return deformed_log(log_k, e)
    with np.errstate(over="ignore"):  # at α < −1 the loss is infinite if k underflows to 0
        return array_namespace(log_k).exp(e * log_k) / e


class Divergence:
    """An f-divergence Σ P f(Q/P).

    To define a divergence, subclass this and define `value` (f) and `slope` (f'). By default it is summed over all
    pairs and needs P > 0 for every pair. Set `limit` if f' has a limit at infinity: then only the stored pairs of a
    sparse P are summed, and the time is linear in their number.

    Attributes
    ----------
    s : float or None, default=None
        (1−α)/2 for members of the α family with α < 1, whose loss and gradient need only pairs with P > 0
        (docs/math.md, eq. 3); None for other divergences.
    limit : float, default=inf
        f'(∞), the limit of f(t)/t: a pair with P = 0 adds `limit` · Q to the loss.
    """

    s: float | None = None
    limit: float = np.inf

    @property
    def all_pairs(self) -> bool:
        """Whether the loss is finite only if P > 0 for every pair."""
        return self.s is None and not np.isfinite(self.limit)

    def value(self, t: Array) -> Array:
        """Return f(t) for t = Q/P > 0."""
        raise TypeError(f"{type(self).__name__} must define value(t)")

    def slope(self, t: Array) -> Array:
        """Return f'(t)."""
        raise TypeError(f"{type(self).__name__} must define slope(t)")

    def between(self, P: Any, Q: Any) -> float:
        """Return the divergence of Q from P, matrices (n, n) of nonnegative numbers; the diagonals are ignored.

        This is the plain formula over all pairs, in float64. P and Q must each sum to 1 off the diagonal.
        """
        p, q = _off_diagonal(P, Q)
        stored = p > 0
        rest = float(q[~stored].sum())
        value = float((p[stored] * self.value(q[stored] / p[stored])).sum())
        return value + self.limit * rest if rest > 0 else value


def _off_diagonal(P: Any, Q: Any) -> list[Array]:
    """Return the off-diagonal entries of P and Q, both (n, n), each as a vector in float64."""
    P, Q = _as_array(P), _as_array(Q)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or P.shape != Q.shape:
        raise ValueError(f"P and Q must be two matrices (n, n) of the same points, got shapes {P.shape} and {Q.shape}")
    return [M[~np.eye(len(M), dtype=bool)] for M in (P, Q)]


def _as_array(M: Any) -> Array:
    """Return a matrix, which may be sparse, as a NumPy array in float64."""
    return np.asarray(M.toarray() if sparse.issparse(M) else M, dtype=np.float64)


@tagged("divergences.Alpha")
@dataclass(frozen=True)
class Alpha(Divergence):
    """f_α(t) = 4/(1−α²) · [(1−α)/2 + (1+α)/2 t − t^((1+α)/2)] (Lin et al. 2024, eq. 14), any real α.

    α = −1 is the Kullback-Leibler divergence, 0 four times the squared Hellinger distance, 1 the reverse
    Kullback-Leibler divergence, 3 half of χ².

    Parameters
    ----------
    alpha : float, default=-1.0
        The parameter α, any finite number.
    """

    alpha: float = -1.0

    def __post_init__(self) -> None:
        if not is_finite(self.alpha):
            raise ValueError(f"alpha must be a finite number, got {self.alpha!r}")

    @property
    def s(self) -> float | None:  # type: ignore[override]
        return (1 - self.alpha) / 2 if self.alpha < 1 else None

    @property
    def limit(self) -> float:  # type: ignore[override]
        return np.inf if self.s is None else 1 / self.s

    def value(self, t: Array) -> Array:
        s = (1 - self.alpha) / 2
        t = at_least(t, TINY)
        log_t = array_namespace(t).log(t)
        if s > 0.5:  # f = (t − 1 − ln_{1−s} t)/s, exact at s = 1
            return (t - 1 - deformed_log(log_t, 1 - s)) / s
        return (1 - t + t * deformed_log(log_t, -s)) / (1 - s)  # exact at s = 0

    def slope(self, t: Array) -> Array:
        return deformed_log(array_namespace(t).log(at_least(t, TINY)), -(1 - self.alpha) / 2)


def KL() -> Alpha:
    """Return the Kullback-Leibler divergence Σ P log(P/Q): α = −1."""
    return Alpha(-1.0)


def Hellinger() -> Alpha:
    """Return the divergence with α = 0, 2 Σ (√P − √Q)²: four times the squared Hellinger distance."""
    return Alpha(0.0)


@tagged("divergences.ChiSquare")
@dataclass(frozen=True)
class ChiSquare(Divergence):
    """f(t) = (t − 1)²: Σ (Q − P)²/P. It needs P > 0 for every pair."""

    def value(self, t: Array) -> Array:
        return (t - 1) ** 2

    def slope(self, t: Array) -> Array:
        return 2 * (t - 1)


@tagged("divergences.JensenShannon")
@dataclass(frozen=True)
class JensenShannon(Divergence):
    """½ KL(P ‖ M) + ½ KL(Q ‖ M), M = (P + Q)/2: symmetric, and at most log 2 (Lin 1991).

    It is the f-divergence with f(t) = ½ [t log t − (1 + t) log((1 + t)/2)].
    """

    limit = float(np.log(2) / 2)

    def value(self, t: Array) -> Array:
        log = array_namespace(t).log
        t = at_least(t, TINY)
        return (t * log(2 * t / (1 + t)) + log(2 / (1 + t))) / 2

    def slope(self, t: Array) -> Array:
        return array_namespace(t).log(0.5 + 0.5 / at_least(t, TINY)) / -2


def log_overlap(x: Any, e: float) -> Any:
    """Return log(1 + e x)/e; at e = 0 this is its limit, x. It turns sums of ln_e into logarithms of power sums."""
    return x if e == 0 else array_namespace(x).log1p(e * x) / e


@tagged("divergences.Renyi")
@dataclass(frozen=True)
class Renyi(Divergence):
    """log(Σ P^r Q^(1−r)) / (r − 1), a function of the α-divergence with r = (1−α)/2 (Rényi 1961).

    The order 1 is the Kullback-Leibler divergence, in the limit.

    Parameters
    ----------
    order : float
        The order r > 0.
    """

    order: float
    all_pairs = False

    def __post_init__(self) -> None:
        if not is_positive(self.order):
            raise ValueError(f"order must be a positive number, got {self.order!r}")

    def between(self, P: Any, Q: Any) -> float:
        e = 1 - self.order
        return -log_overlap(-self.order * Alpha(1 - 2 * self.order).between(P, Q), e)


@tagged("divergences.Beta")
@dataclass(frozen=True)
class Beta(Divergence):
    """Σ [P^β / (β(β−1)) + Q^β / β − P Q^(β−1) / (β−1)] (Basu et al. 1998).

    β = 1 is the Kullback-Leibler divergence, in the limit; β = 2 is ½ Σ (P − Q)². The larger β, the less pairs with
    small affinities count. Affinities are about 1/n², so that the loss is of order n^(2 − 2β).

    Parameters
    ----------
    beta : float
        The exponent β > 0.
    """

    beta: float
    all_pairs = False

    def __post_init__(self) -> None:
        if not is_positive(self.beta):
            raise ValueError(f"beta must be a positive number, got {self.beta!r}")

    def between(self, P: Any, Q: Any) -> float:
        p, q = _off_diagonal(P, Q)
        e, stored = self.beta - 1, p > 0
        p, rest, q = p[stored], q[~stored], q[stored]
        pairs = (p * deformed_log(np.log(p), e) - p + q**self.beta) / self.beta - p * deformed_log(np.log(q), e)
        return float(pairs.sum() + (rest**self.beta).sum() / self.beta)


@tagged("divergences.Gamma")
@dataclass(frozen=True)
class Gamma(Divergence):
    """[log Σ P^(γ+1) / (γ+1) − log Σ P Q^γ] / γ + log Σ Q^(γ+1) / (γ+1) (Fujisawa & Eguchi 2008).

    γ = 0 is the Kullback-Leibler divergence, in the limit; γ = 1 is −log of the cosine between P and Q. Factors of P
    and Q cancel, so that the normaliser of Q is not needed.

    Parameters
    ----------
    gamma : float
        The exponent γ > −1.
    """

    gamma: float
    all_pairs = False

    def __post_init__(self) -> None:
        if not (is_finite(self.gamma) and self.gamma > -1):
            raise ValueError(f"gamma must be a number above -1, got {self.gamma!r}")

    def between(self, P: Any, Q: Any) -> float:
        p, q = _off_diagonal(P, Q)
        g, stored = self.gamma, p > 0
        own, mixed = (float((p[stored] * deformed_log(np.log(x[stored]), g)).sum()) for x in (p, q))
        return float((log_overlap(own, g) + np.log((q ** (g + 1)).sum())) / (g + 1) - log_overlap(mixed, g))


class _TwoWay(Divergence):
    """a KL(P ‖ Q) + b KL(Q ‖ P'), with the affinities P' = (1−ε) P + ε/(n(n−1)), which are positive for every pair.

    Subclasses define the weights a and b and the share ε of the uniform distribution.
    """

    weights: tuple[float, float]
    epsilon: float
    all_pairs = False

    def __post_init__(self) -> None:
        if not (is_positive(self.epsilon) and self.epsilon <= 1):
            raise ValueError(f"epsilon must be a number above 0 and at most 1, got {self.epsilon!r}")

    def between(self, P: Any, Q: Any) -> float:
        a, b = self.weights
        P = _as_array(P)
        n = len(P)
        mixed = (1 - self.epsilon) * P + self.epsilon / (n * (n - 1))
        forward = a * KL().between(P, Q) if a > 0 else 0.0
        return forward + (b * KL().between(Q, mixed) if b > 0 else 0.0)


@tagged("divergences.NeRV")
@dataclass(frozen=True)
class NeRV(_TwoWay):
    """λ KL(P ‖ Q) + (1−λ) KL(Q ‖ P'): recall against precision (Venna et al. 2010).

    KL(P ‖ Q) is large if neighbours in the data are far apart in the map: it rewards recall. KL(Q ‖ P') is large if
    neighbours in the map are not neighbours in the data: it rewards precision. P' is P mixed with the uniform
    distribution, P' = (1−ε) P + ε/(n(n−1)), because KL(Q ‖ P) is infinite if P is 0 for any pair.

    Parameters
    ----------
    lam : float, default=0.5
        λ in [0, 1]: 1 is the loss of t-SNE, 0 is KL(Q ‖ P').
    epsilon : float, default=0.1
        The share ε of the uniform distribution. A pair without affinity costs Q log(Q n(n−1)/ε), so that ε enters
        only by its logarithm (docs/math.md, section 1).
    """

    lam: float = 0.5
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not (is_finite(self.lam) and 0 <= self.lam <= 1):
            raise ValueError(f"lam must be between 0 and 1, got {self.lam!r}")
        super().__post_init__()

    @property
    def weights(self) -> tuple[float, float]:  # type: ignore[override]
        return self.lam, 1 - self.lam


@tagged("divergences.SymmetricKL")
@dataclass(frozen=True)
class SymmetricKL(_TwoWay):
    """KL(P ‖ Q) + KL(Q ‖ P'), twice `NeRV` with λ = ½.

    Parameters
    ----------
    epsilon : float, default=0.1
        The share ε of the uniform distribution in P' = (1−ε) P + ε/(n(n−1)).
    """

    epsilon: float = 0.1
    weights = 1.0, 1.0

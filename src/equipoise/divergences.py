"""Divergences E = Σ_ij P_ij f(Q_ij / P_ij), f convex with f(1) = 0 (Lin et al. 2024, eq. 6).

The α family is computed from s = (1−α)/2 and the deformed logarithm ln_e(t) = (t^e − 1)/e, ln_0 = log; for example,
f'_α(t) = ln_{−s}(t). These formulas also hold in the limits α = ±1, without cancellation. All formulas accept NumPy,
PyTorch and CuPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._tags import tagged
from ._types import Array
from .arrays.namespace import array_namespace, at_least, is_finite

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

    To define a divergence, subclass this and define `value` (f) and `slope` (f'). A divergence with s = None is summed
    over all pairs and needs a dense P.

    Attributes
    ----------
    s : float or None, default=None
        (1−α)/2 for members of the α family with α < 1, whose loss and gradient need only pairs with P > 0
        (docs/math.md, eq. 3); None for other divergences.
    """

    s: float | None = None

    def value(self, t: Array) -> Array:
        """Return f(t) for t = Q/P > 0."""
        raise TypeError(f"{type(self).__name__} must define value(t)")

    def slope(self, t: Array) -> Array:
        """Return f'(t)."""
        raise TypeError(f"{type(self).__name__} must define slope(t)")


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

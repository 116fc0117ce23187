"""Losses F(k_x, k_y) of a pair of points, for E = Σ_ij F (Draganov & Dohn 2024, eq. 3).

k_x is the affinity of the two points in the data, and k_y = k(d2) the kernel of their squared distance in the map. A
loss defines F and its derivative with respect to k_y:

>>> import equipoise as eq
>>> quartic = eq.PairLoss(lambda kx, ky: (kx - ky) ** 4, lambda kx, ky: 4 * (ky - kx) ** 3)

Formulas are written against the array API namespace of k_y, so that they accept NumPy, PyTorch and CuPy arrays. They
are evaluated in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._tags import tagged
from ._types import Array
from .arrays.namespace import array_namespace, at_least, require
from .kernels import Kernel

__all__ = ["BinaryCrossEntropy", "Contrastive", "LogLikelihood", "PairLoss", "SquaredDifference"]

FLOOR = 1e-300  # lower bound of k_y in a quotient: a pair whose kernel underflows then has the force 0, not 0/0
AFFINITIES = (0.0, 0.01, 0.3, 1.0)  # k_x at which a user's loss is checked
GRID = np.concatenate([[0.0], np.logspace(-3, 2, 26)])  # squared distances, in units of the kernel's length²
STEP = 1e-5  # relative step of the finite differences
TOLERANCE = 1e-3  # largest error of a derivative, relative to the largest one on the grid; chosen


class PairLoss:
    """A loss F(k_x, k_y) of a pair: k_x is its affinity in the data, k_y its kernel in the map.

    Pass two functions, or subclass this and define the methods `value` and `slope`; a subclass with parameters is a
    frozen dataclass.

    Parameters
    ----------
    value : callable
        F(kx, ky), for two float64 arrays of the same shape.
    slope : callable
        ∂F/∂k_y at (kx, ky).
    """

    def __init__(
        self, value: Callable[[Array, Array], Array] | None = None, slope: Callable[[Array, Array], Array] | None = None
    ):
        self._value, self._slope = value, slope

    def value(self, kx: Array, ky: Array) -> Array:
        """Return F(k_x, k_y) for arrays of the same shape."""
        if (function := getattr(self, "_value", None)) is None:
            raise TypeError(f"{type(self).__name__} must define value(kx, ky)")
        return function(kx, ky)

    def slope(self, kx: Array, ky: Array) -> Array:
        """Return the derivative ∂F/∂k_y."""
        if (function := getattr(self, "_slope", None)) is None:
            raise TypeError(
                f"{type(self).__name__} must define slope(kx, ky), the derivative of value with respect to ky;"
                " PairLoss(F, dF) takes it as second argument"
            )
        return function(kx, ky)

    def __repr__(self) -> str:
        functions = (getattr(self, "_value", None), getattr(self, "_slope", None))
        return f"{type(self).__name__}({', '.join(getattr(f, '__name__', repr(f)) for f in functions if f)})"


def _apart(ky: Array, epsilon: float) -> Array:
    """Return −log(1 − q) for q = k_y/(1 + ε k_y), which is finite at k_y = 1."""
    xp = array_namespace(ky)
    return xp.log1p(epsilon * ky) - xp.log1p(-(1 - epsilon) * ky)


def _apart_slope(ky: Array, epsilon: float) -> Array:
    return epsilon / (1 + epsilon * ky) + (1 - epsilon) / (1 - (1 - epsilon) * ky)


@tagged("pair_losses.BinaryCrossEntropy")
@dataclass(frozen=True)
class BinaryCrossEntropy(PairLoss):
    """F = −k_x log k_y − (1 − k_x) log(1 − q), q = k_y/(1 + ε k_y): the loss UMAP is meant to minimise.

    For k_y = 1/(1 + d2), q is the kernel at d2 + ε (McInnes et al. 2018; Draganov & Dohn 2024, eq. 2).

    Parameters
    ----------
    epsilon : float, default=0.01
        ε, which keeps F finite at k_y = 1; as in `UMAP`.
    """

    epsilon: float = 0.01

    def __post_init__(self) -> None:
        _check_positive(self, "epsilon")

    def value(self, kx: Array, ky: Array) -> Array:
        xp = array_namespace(ky)
        return -kx * xp.log(at_least(ky, FLOOR)) + (1 - kx) * _apart(ky, self.epsilon)

    def slope(self, kx: Array, ky: Array) -> Array:
        return -kx / at_least(ky, FLOOR) + (1 - kx) * _apart_slope(ky, self.epsilon)


@tagged("pair_losses.LogLikelihood")
@dataclass(frozen=True)
class LogLikelihood(PairLoss):
    """F = −k_x log k_y − γ log(1 − q), q = k_y/(1 + ε k_y): LargeVis, and what UMAP minimises by sampling.

    Unlike in `BinaryCrossEntropy`, neighbours repel each other as much as any two points do (Tang et al. 2016;
    Damrich & Hamprecht 2021).

    Parameters
    ----------
    gamma : float, default=1.0
        γ, the weight of the repulsion; 7 in LargeVis.
    epsilon : float, default=0.01
        ε, which keeps F finite at k_y = 1.
    """

    gamma: float = 1.0
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        _check_positive(self, "gamma", "epsilon")

    def value(self, kx: Array, ky: Array) -> Array:
        xp = array_namespace(ky)
        return -kx * xp.log(at_least(ky, FLOOR)) + self.gamma * _apart(ky, self.epsilon)

    def slope(self, kx: Array, ky: Array) -> Array:
        return -kx / at_least(ky, FLOOR) + self.gamma * _apart_slope(ky, self.epsilon)


@tagged("pair_losses.SquaredDifference")
@dataclass(frozen=True)
class SquaredDifference(PairLoss):
    """F = (k_x − k_y)²: double-kernel PCA without centring (Draganov & Dohn 2024, eq. 6)."""

    def value(self, kx: Array, ky: Array) -> Array:
        return (kx - ky) ** 2

    def slope(self, kx: Array, ky: Array) -> Array:
        return 2 * (ky - kx)


@tagged("pair_losses.Contrastive")
@dataclass(frozen=True)
class Contrastive(PairLoss):
    """F = −k_x log q − log(1 − q), q = k_y/(k_y + s): noise-contrastive estimation, from UMAP to t-SNE.

    q is the probability that a pair is a pair of neighbours and not a random pair, if k_y/Z is the probability of a
    pair and each pair of neighbours comes with m random ones: s = m Z/n². With s = 1 the maps are like those of UMAP,
    and smaller s repel more. If Z is learned with the map, the maps approach those of t-SNE as m grows (Damrich et al.
    2023).

    Parameters
    ----------
    scale : float or "learned", default=1.0
        s. "learned" fits it together with the map; this requires engine="negative_sampling".
    """

    scale: Any = 1.0

    def __post_init__(self) -> None:
        if not self.is_learned:
            _check_positive(self, "scale")

    @property
    def is_learned(self) -> bool:
        """Whether the scale is fitted together with the map."""
        return isinstance(self.scale, str) and self.scale == "learned"

    def probability(self, ky: Array) -> Array:
        """Return q, the probability that a pair with kernel k_y is a pair of neighbours."""
        return ky / (ky + self.scale)

    def value(self, kx: Array, ky: Array) -> Array:
        xp = array_namespace(ky)
        return kx * xp.log1p(self.scale / at_least(ky, FLOOR)) + xp.log1p(ky / self.scale)

    def slope(self, kx: Array, ky: Array) -> Array:
        return (1 - kx * self.scale / at_least(ky, FLOOR)) / (ky + self.scale)


def _check_positive(loss: PairLoss, *names: str) -> None:
    """Convert the named parameters to float; raise ValueError unless they are positive."""
    for name in names:
        object.__setattr__(loss, name, require(getattr(loss, name), name, "> 0", lambda x: x > 0))


def check_pair_loss(loss: PairLoss, kernel: Kernel) -> None:
    """Raise unless F accepts arrays and is finite, `slope` is its derivative, and both k_x and k_y matter.

    F is evaluated at the values of the kernel for distances from 0 to 10 times its length.

    Raises
    ------
    TypeError
        If `value` or `slope` is not defined.
    ValueError
        If the loss is not valid; a message about a wrong value names k_x and k_y.
    """
    top = float(kernel.value(np.zeros(1))[0])
    ky = np.tile(np.asarray(kernel.value(GRID * float(kernel.length) ** 2), dtype=np.float64), len(AFFINITIES))
    kx = np.repeat(AFFINITIES, len(GRID))
    F, slope = _evaluate(loss, "value", kx, ky), _evaluate(loss, "slope", kx, ky)
    inside = (ky > 0) & (ky * (1 + STEP) <= top)  # F may be undefined beyond k(0)
    below, above = (_evaluate(loss, "value", kx[inside], ky[inside] * (1 + step)) for step in (-STEP, STEP))
    derivative = (above - below) / (2 * STEP * ky[inside])
    noise = 1e-12 * np.abs(F[inside]) / (STEP * ky[inside])
    given = slope[inside]
    wrong = np.abs(given - derivative) > TOLERANCE * np.maximum(np.abs(derivative), np.abs(given)) + noise
    if wrong.mean() > 0.1:  # a kink of F is at few points of the grid
        t = int(wrong.argmax())
        raise ValueError(
            f"slope of {loss!r} at kx = {kx[inside][t]:.3g}, ky = {ky[inside][t]:.3g} is {given[t]:.3g}, but the"
            f" derivative of value with respect to ky is {derivative[t]:.3g} there; correct value or slope"
        )
    table = slope.reshape(len(AFFINITIES), -1)
    if not np.any(table[0]):
        raise ValueError(f"{loss!r} repels no points: at kx = 0 its slope is 0 for all ky; add a term without kx")
    if not np.any(table[1:] != table[0]):
        raise ValueError(f"the slope of {loss!r} does not depend on kx, the affinity in the data; add a term with kx")


def _evaluate(loss: PairLoss, name: str, kx: Array, ky: Array) -> Array:
    """Return `value` or `slope` at (kx, ky), after a check of type, shape and finiteness."""
    try:
        with np.errstate(all="ignore"):
            values = getattr(loss, name)(kx.copy(), ky.copy())
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
        if isinstance(error, TypeError) and "must define" in str(error):
            raise
        raise ValueError(
            f"{name} of {loss!r} fails for arrays kx and ky: {error}. Write it elementwise, with array functions such"
            " as numpy.where instead of if statements"
        ) from error
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind not in ("f", "i", "u") or np.shape(values) != ky.shape:
        found = type(values).__name__ if kind is None else f"shape {np.shape(values)} and dtype {values.dtype}"
        raise ValueError(
            f"{name} of {loss!r} must return an array of numbers with the shape of kx and ky, {ky.shape}; got {found}"
        )
    result = np.asarray(values, dtype=np.float64)
    if not np.isfinite(result).all():
        t = int((~np.isfinite(result)).argmax())
        advice = "use a kernel with k(0) <= 1"
        if ky[t] <= 1:
            advice = "replace ky by ky / (1 + 0.01 * ky) in terms that are infinite at ky = 1"
        raise ValueError(
            f"{name} of {loss!r} at kx = {kx[t]:.3g}, ky = {ky[t]:.3g} is {result[t]}, but it must be finite; {advice}"
        )
    return result

"""Kernels k(d2): the similarity of two points of the map as a function of their squared distance d2.

A kernel defines its value k and its slope k' = dk/d(d2). Engines, objectives and the optimiser accept any kernel,
including user-defined ones:

>>> class Loop(Kernel):
...     def value(self, d2): return (1 + d2) ** -1.5
...     def slope(self, d2): return -1.5 * (1 + d2) ** -2.5

Formulas are written against the array API namespace of d2, so that they accept NumPy, PyTorch and CuPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.optimize import curve_fit

from . import _core
from ._tags import tagged
from ._types import Array
from .arrays.namespace import array_namespace, at_least, require

TINY = 1e-30  # lower bound of d2 where a slope is infinite at 0, so that coincident points give 0 · finite = 0


class Kernel:
    """A radial kernel k(d2), positive and nowhere increasing.

    To define a kernel, subclass this and define `value` and `slope`; if it has parameters, make it a frozen dataclass.

    Attributes
    ----------
    length : float, default=1.0
        The distance at which k leaves its plateau; the unit of length of the map (docs/math.md, section 2).
    kink : float, default=0.0
        The distance at which the slope jumps; 0 if the slope is continuous.
    rational : tuple of float or None, default=None
        Numbers (a, c) if k'/k = −a/(c + d2), a form for which some engines are faster; None if not specified.
    spread : float, default=1e-4
        Standard deviation of the initial map, in units of `length`. The default is inside the plateau, as in van der
        Maaten & Hinton.
    """

    length: float = 1.0
    kink: float = 0.0
    rational: tuple[float, float] | None = None
    spread: float = 1e-4

    def value(self, d2: Array) -> Array:
        """Return k(d2) for squared distances of any shape."""
        raise TypeError(f"{type(self).__name__} must define value(d2)")

    def slope(self, d2: Array) -> Array:
        """Return k'(d2) = dk/d(d2) for squared distances of any shape."""
        raise TypeError(f"{type(self).__name__} must define slope(d2)")

    def log_value(self, d2: Array) -> Array:
        """Return log k(d2)."""
        k = self.value(d2)
        return array_namespace(k).log(k)

    def log_slope(self, d2: Array) -> Array:
        """Return k'(d2) / k(d2)."""
        return self.slope(d2) / self.value(d2)

    def native(self) -> _core.Kernel | None:
        """Return the compiled counterpart of a built-in kernel, or None to use the Python formulas."""
        return None


class DerivedKernel(Kernel):
    """A function of another kernel, `kernel`, with the same length and kink; subclasses are dataclasses."""

    kernel: Kernel
    length = property(lambda self: self.kernel.length)
    kink = property(lambda self: self.kernel.kink)


class _LogSlopeKernel(Kernel):
    """A built-in kernel, defined by k and k'/k. Engines compute k' as (k'/k) k, so that they round alike."""

    def slope(self, d2: Array) -> Array:
        return self.log_slope(d2) * self.value(d2)

    def native(self) -> _core.Kernel | None:
        # A subclass defined elsewhere may change the formulas, so it does not use the compiled ones.
        return self._native() if type(self).__module__ == __name__ else None

    def _native(self) -> _core.Kernel:
        raise TypeError(f"{type(self).__name__} must define _native()")


@tagged("kernels.Gaussian")
@dataclass(frozen=True)
class Gaussian(_LogSlopeKernel):
    """k = exp(−d2), the kernel of SNE and symmetric SNE (Hinton & Roweis 2002)."""

    length = float(np.sqrt(0.5))  # standard deviation; it halves the step, because the attraction has no bound

    def value(self, d2: Array) -> Array:
        return array_namespace(d2).exp(-d2)

    def log_value(self, d2: Array) -> Array:
        return -d2

    def log_slope(self, d2: Array) -> Array:
        return array_namespace(d2).full_like(d2, -1.0)

    def _native(self) -> _core.Kernel:
        return _core.Kernel.gaussian()


@tagged("kernels.StudentT")
@dataclass(frozen=True)
class StudentT(_LogSlopeKernel):
    """k = (1 + d2/ν)^(−(ν+1)/2); ν = 1 is the kernel of t-SNE (van der Maaten & Hinton 2008).

    Parameters
    ----------
    dof : float, default=1.0
        ν, the degrees of freedom.
    """

    dof: float = 1.0

    @property
    def length(self) -> float:  # type: ignore[override]
        return float(np.sqrt(2 * self.dof / (self.dof + 1)))

    @property
    def rational(self) -> tuple[float, float]:  # type: ignore[override]
        return (self.dof + 1) / 2, self.dof

    def __post_init__(self) -> None:
        _check_parameters(self, "dof")

    def value(self, d2: Array) -> Array:
        return 1 / (1 + d2 / self.dof) ** ((self.dof + 1) / 2)

    def log_value(self, d2: Array) -> Array:
        return -(self.dof + 1) / 2 * array_namespace(d2).log(1 + d2 / self.dof)

    def log_slope(self, d2: Array) -> Array:
        return -((self.dof + 1) / (2 * self.dof)) / (1 + d2 / self.dof)

    def _native(self) -> _core.Kernel:
        return _core.Kernel.shifted_power(1.0, 1 / self.dof, (self.dof + 1) / 2)


@tagged("kernels.PowerLaw")
@dataclass(frozen=True)
class PowerLaw(_LogSlopeKernel):
    """k = max(r, r0)^(−β) for r = √d2, the kernel of p-SNE (Tseng et al. 2017).

    Lin et al. 2024, eq. (4) sets Q to 0 inside the cut-off r0, so that the loss is infinite once two neighbours are
    closer than r0. Here k is constant inside r0: there is no force, as in the paper, and the loss remains finite.

    Parameters
    ----------
    beta : float, default=2.0
        The exponent β.
    r0 : float, default=1.0
        The cut-off distance.
    """

    beta: float = 2.0
    r0: float = 1.0

    spread = 10.0  # well outside the cut-off, where there are forces

    @property
    def length(self) -> float:  # type: ignore[override]
        # Outside r0, scaling Y does not change Q: the cut-off, where attraction is strongest, is the only length.
        return float(self.r0 * np.sqrt(2 / self.beta))

    @property
    def kink(self) -> float:  # type: ignore[override]
        return self.r0

    def __post_init__(self) -> None:
        _check_parameters(self, "beta", "r0")

    def value(self, d2: Array) -> Array:
        return at_least(d2, self.r0**2) ** (-self.beta / 2)

    def log_value(self, d2: Array) -> Array:
        return -self.beta / 2 * array_namespace(d2).log(at_least(d2, self.r0**2))

    def log_slope(self, d2: Array) -> Array:
        return array_namespace(d2).where(d2 <= self.r0**2, 0.0, -self.beta / 2 / at_least(d2, self.r0**2))

    def _native(self) -> _core.Kernel:
        return _core.Kernel.clamped_power(self.r0**2, self.beta / 2)


@tagged("kernels.RegularizedPowerLaw")
@dataclass(frozen=True)
class RegularizedPowerLaw(_LogSlopeKernel):
    """k = 1 / (η + r^β) for r = √d2, the kernel of g-SNE (Lin et al. 2024, eq. 13); of t-SNE if β = 2 and η = 1.

    Parameters
    ----------
    beta : float, default=2.0
        The exponent β.
    eta : float, default=1.0
        The regularisation η.
    """

    beta: float = 2.0
    eta: float = 1.0

    def __post_init__(self) -> None:
        _check_parameters(self, "beta", "eta")

    @property
    def length(self) -> float:  # type: ignore[override]
        # k = η^−1 / (1 + (r / η^(1/β))^β): η only sets the unit of length.
        return float(self.eta ** (1 / self.beta))

    @property
    def spread(self) -> float:  # type: ignore[override]
        # For β > 2 the force r^(β−1) near 0 is too weak to expand a tiny map; 0.1 works for any β (measured on digits).
        return 1e-4 if self.beta <= 2 else 0.1

    def value(self, d2: Array) -> Array:
        return 1 / (self.eta + d2 ** (self.beta / 2))

    def log_value(self, d2: Array) -> Array:
        return -array_namespace(d2).log(self.eta + d2 ** (self.beta / 2))

    def log_slope(self, d2: Array) -> Array:
        d2 = at_least(d2, TINY)
        t = d2 ** (self.beta / 2)
        return -(self.beta / 2) * (t / d2) / (self.eta + t)

    def _native(self) -> _core.Kernel:
        if self.beta == 2:
            return _core.Kernel.shifted_power(self.eta, 1.0, 1.0)
        return _core.Kernel.regularized_power(self.eta, 1.0, self.beta / 2)


@tagged("kernels.SphericalExit")
@dataclass(frozen=True)
class SphericalExit(_LogSlopeKernel):
    """k = ((1−ρ)² + ρ d2)^(−d/2) on the unit sphere in R^d, the kernel of s-SNE (Lin et al. 2024, eq. 5).

    A Brownian motion started at ρ y_i first reaches the sphere at y_j with a density proportional to
    ‖y_j − ρ y_i‖^(−d), the exit distribution. On the sphere ‖y_j − ρ y_i‖² = (1−ρ)² + ρ d2.

    Parameters
    ----------
    rho : float, default=0.95
        ρ in [0, 1): the norm of the starting point of the Brownian motion.
    dimension : int, default=3
        d, the dimension of the ambient space.
    """

    rho: float = 0.95
    dimension: int = 3

    spread = 1.0  # the sphere fixes the scale

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", require(self.rho, "rho", "in [0, 1)", lambda x: 0 <= x < 1))
        object.__setattr__(self, "dimension", require(self.dimension, "dimension", ">= 1", lambda x: x >= 1))

    @property
    def length(self) -> float:  # type: ignore[override]
        # Capped at the radius of the sphere.
        return float(min(1.0, (1 - self.rho) / np.sqrt(self.rho * self.dimension / 2))) if self.rho > 0 else 1.0

    def value(self, d2: Array) -> Array:
        return 1 / ((1 - self.rho) ** 2 + self.rho * d2) ** (self.dimension / 2)

    def log_value(self, d2: Array) -> Array:
        return -self.dimension / 2 * array_namespace(d2).log((1 - self.rho) ** 2 + self.rho * d2)

    def log_slope(self, d2: Array) -> Array:
        return -self.dimension / 2 * self.rho / ((1 - self.rho) ** 2 + self.rho * d2)

    def _native(self) -> _core.Kernel:
        return _core.Kernel.shifted_power((1 - self.rho) ** 2, self.rho, self.dimension / 2)


@tagged("kernels.Power")
@dataclass(frozen=True)
class Power(DerivedKernel):
    """k^e for a kernel k and an exponent e > 0 (docs/math.md, eq. V3 and V4)."""

    kernel: Kernel
    exponent: float

    @property
    def length(self) -> float:  # type: ignore[override]
        return float(self.kernel.length / np.sqrt(self.exponent))  # its log-slope is e times that of k

    def value(self, d2: Array) -> Array:
        return self.kernel.value(d2) ** self.exponent

    def slope(self, d2: Array) -> Array:
        e, k = self.exponent, at_least(self.kernel.value(d2), TINY)
        return e * k ** (e - 1) * self.kernel.slope(d2)

    def native(self) -> _core.Kernel | None:
        k, shifted = self.kernel, _core.Kernel.shifted_power
        return shifted(1.0, 1 / k.dof, self.exponent * (k.dof + 1) / 2) if type(k) is StudentT else None


@tagged("kernels.Squared")
@dataclass(frozen=True)
class Squared(Power):
    """k² for a kernel k. The sum of k² over all i and j is ‖K_Y‖²_F for (K_Y)_ij = k(d2_ij) (docs/math.md, eq. D2)."""

    exponent: ClassVar[float] = 2.0  # type: ignore[misc]


@tagged("kernels.Membership")
@dataclass(frozen=True)
class Membership(_LogSlopeKernel):
    """k = 1 / (1 + a d2^b) for a, b > 0: UMAP's membership strength of two points (McInnes et al. 2018)."""

    a: float = 1.0
    b: float = 1.0

    spread = 5.0  # the loss has no normaliser: forces have the right size only if the map has about its final extent

    def __post_init__(self) -> None:
        _check_parameters(self, "a", "b")

    @classmethod
    @lru_cache(maxsize=64)
    def fitted(cls, min_dist: float, spread: float) -> Membership:
        """Return the kernel fitted to UMAP's curve: 1 for r = √d2 up to min_dist, then exp(−(r − min_dist)/spread)."""
        r, flat = np.linspace(0, 3, 300), min_dist / spread  # in units of spread; grid and range of umap-learn's fit
        target = np.where(r < flat, 1.0, np.exp(-(r - flat)))
        (a, b), _ = curve_fit(lambda r, a, b: 1 / (1 + a * r ** (2 * b)), r, target)
        return cls(float(a * spread ** (-2 * b)), float(b))

    @property
    def length(self) -> float:  # type: ignore[override]
        return float(self.a ** (-0.5 / self.b))

    def value(self, d2: Array) -> Array:
        return 1 / (1 + self.a * d2**self.b)

    def log_value(self, d2: Array) -> Array:
        return -array_namespace(d2).log1p(self.a * d2**self.b)

    def log_slope(self, d2: Array) -> Array:
        d2 = at_least(d2, TINY)
        t = self.a * d2**self.b
        return -self.b * (t / d2) / (1 + t)

    def _native(self) -> _core.Kernel:
        return _core.Kernel.regularized_power(1.0, self.a, self.b)


@tagged("kernels.NonMembership")
@dataclass(frozen=True)
class NonMembership(_LogSlopeKernel):
    """k = −log(1 − 1 / (1 + a x^b)), x = d2 + ε: UMAP's repulsive potential; ε = `epsilon` keeps it finite at 0."""

    a: float = 1.0
    b: float = 1.0
    epsilon: float = 1e-3

    def __post_init__(self) -> None:
        _check_parameters(self, "a", "b", "epsilon")

    @property
    def length(self) -> float:  # type: ignore[override]
        return float(np.sqrt(float(self.epsilon)))

    def value(self, d2: Array) -> Array:
        return array_namespace(d2).log1p(1 / (self.a * (d2 + self.epsilon) ** self.b))

    def log_slope(self, d2: Array) -> Array:
        x = d2 + self.epsilon
        return -self.b / (x * (1 + self.a * x**self.b) * self.value(d2))

    def _native(self) -> _core.Kernel:
        return _core.Kernel.log_complement(self.epsilon, self.a, self.b)


def _check_parameters(kernel: Kernel, *names: str) -> None:
    """Raise ValueError unless the named parameters are positive and the length is between 1e-100 and 1e100."""
    for name in names:
        object.__setattr__(kernel, name, require(getattr(kernel, name), name, "> 0", lambda x: x > 0))
    try:
        valid = 1e-100 <= kernel.length <= 1e100
    except OverflowError:
        valid = False
    if not valid:
        raise ValueError(f"the length scale of {kernel!r} is not between 1e-100 and 1e100; use less extreme parameters")

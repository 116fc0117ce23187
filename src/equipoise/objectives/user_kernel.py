"""Checks a user-defined kernel before a fit starts: shapes, values, monotonicity and slope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import kernels
from .._types import Array
from ..kernels import Kernel

GRID = np.logspace(-3, 3, 49)  # squared distances, in units of length²
STEP = 1e-4  # relative step of the finite differences, forward and backward; where they differ there is a kink
TOLERANCE = 0.02  # largest relative difference between a slope and its finite difference; chosen


def check_kernel(kernel: Kernel) -> None:
    """Raise unless k(d2) accepts arrays, is finite, positive and nowhere increasing, and `slope` is its derivative.

    k may be 0 beyond `kernel.length`. Built-in kernels are not checked: tests compare them with their closed forms.

    Raises
    ------
    TypeError
        If `value` or `slope` is not defined.
    ValueError
        If the kernel is not valid; a message about a wrong value names the squared distance.
    """
    if type(kernel).__module__ == kernels.__name__:
        return
    name, d2 = type(kernel).__name__, GRID * float(kernel.length) ** 2
    k = _evaluate(kernel.value, f"{name}.value", d2)
    slope = _evaluate(kernel.slope, f"{name}.slope", d2)
    if k.min() < 0 or not k[d2 <= kernel.length**2].min() > 0:
        i = int(k.argmin())
        raise ValueError(
            f"{name}.value({d2[i]:.3g}) = {k[i]:.3g}, but a kernel must be positive at distances up to its"
            f" length, {kernel.length:g}, and must not be negative at larger distances"
        )
    rises = np.flatnonzero(np.diff(k) > 1e-9 * k[:-1])
    if rises.size:
        i = int(rises[0])
        raise ValueError(
            f"{name}.value must not increase with the squared distance, but it rises from {k[i]:.3g} at"
            f" d2 = {d2[i]:.3g} to {k[i + 1]:.3g} at d2 = {d2[i + 1]:.3g}"
        )
    _check_slope(kernel, name, d2, slope)


def _evaluate(function: Callable[[Array], Any], name: str, d2: Array) -> Array:
    """Return the values of `value` or `slope` at d2 (m,), after a check of their type, shape and finiteness."""
    for points in (d2, d2.reshape(7, -1)):
        try:
            values = function(points.copy())
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
            if isinstance(error, TypeError) and "must define" in str(error):
                raise
            raise ValueError(
                f"{name}(d2) fails for an array of squared distances: {error}. Write it elementwise, with array"
                " functions such as numpy.where instead of if statements"
            ) from error
        shape, kind = np.shape(values), getattr(getattr(values, "dtype", None), "kind", None)
        if kind not in ("f", "i", "u") or shape != points.shape:
            found = type(values).__name__ if kind is None else f"shape {shape} and dtype {values.dtype}"
            raise ValueError(
                f"{name}(d2) must return an array of numbers with the shape of d2, {points.shape}; got {found}"
            )
    result = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(result).all():
        i = int((~np.isfinite(result)).argmax())
        raise ValueError(f"{name}({d2[i]:.3g}) = {result[i]}, but it must be finite")
    return result


def _check_slope(kernel: Kernel, name: str, d2: Array, slope: Array) -> None:
    """Raise unless `slope` is the derivative of the kernel with respect to d2, except at kinks."""
    below, k, above = (np.asarray(kernel.value(d2 * (1 + step)), dtype=np.float64) for step in (-STEP, 0, STEP))
    backward, forward = (k - below) / (STEP * d2), (above - k) / (STEP * d2)
    noise = 1e-11 * k / (STEP * d2)
    derivative = (backward + forward) / 2
    smooth = np.abs(forward - backward) <= TOLERANCE * np.abs(derivative) + noise
    wrong = smooth & (np.abs(slope - derivative) > TOLERANCE * np.maximum(np.abs(derivative), np.abs(slope)) + noise)
    if not wrong.any():
        return
    i = int(wrong.argmax())
    ratio = slope[wrong] / np.where(derivative[wrong] == 0, np.inf, derivative[wrong])
    hint = "; correct value() or slope()"
    if np.allclose(ratio, ratio[0], rtol=0.05) and ratio[0] != 0:
        wrong_sign = np.isclose(ratio[0], -1, rtol=0.05)
        hint = "; slope() has the wrong sign" if wrong_sign else f"; divide slope() by {ratio[0]:.3g}"
    elif np.allclose(ratio, 2 * np.sqrt(d2[wrong]), rtol=0.05):
        hint = "; slope() must differentiate with respect to d2, not the distance"
    raise ValueError(
        f"{name}.slope({d2[i]:.3g}) = {slope[i]:.3g}, but the derivative of value() with respect to d2 is"
        f" {derivative[i]:.3g} there{hint}"
    )

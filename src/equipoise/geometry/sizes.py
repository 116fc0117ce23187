"""Sizes of closed geometries: checks, and the size that "auto" chooses."""

from __future__ import annotations

from typing import Any

from .._warn import warn
from ..arrays.namespace import is_auto, is_positive

# The side of the square that a map in the plane takes, in kernel lengths, is about ROOM n^(1/4). Measured for t-SNE at
# its defaults, side/n^(1/4): digits, 300 and 1797 points, 10.9 and 19.9; MNIST, 1,000, 5,000, 20,000 and 70,000 points,
# 16.8, 19.3, 15.7 and 12.7.
ROOM = 15.0

LARGEST = 80_000.0  # largest size in kernel lengths: float32 then resolves 1/128 of a kernel length; chosen


def check_largest(value: float, name: str, length: float, most: float = LARGEST) -> None:
    """Raise ValueError if a size, the parameter called `name`, is more than `most` kernel lengths."""
    if value > most * length * (1 + 1e-5):  # the message rounds to six digits
        raise ValueError(
            f"{name}={value:g} is too large: float32 does not resolve a map with the kernel length {length:.3g} there;"
            f' use {name}={most * length:g} or less, or geometry="plane"'
        )


def warn_if_small(value: float, farthest: float, name: str, length: float) -> None:
    """Warn if `farthest`, the largest distance in a space of size `value`, is below the length of the kernel."""
    if farthest < length:
        warn(
            f"{name}={value:g} is too small: all distances are at most {farthest:.3g}, less than the kernel length"
            f' {length:.3g}, and points cannot be told apart; use {name}="auto" or a larger number'
        )


def room(n: int, length: float) -> float:
    """Return the side of a square with the area that the map of n points takes in the plane, for a kernel's length."""
    return ROOM * float(n) ** 0.25 * length


def require_chosen(value: Any, name: str) -> None:
    """Raise ValueError if a size is still "auto", which a fit chooses."""
    if isinstance(value, str):
        raise ValueError(f'{name}="auto" is chosen by fit; use geometry_ of a fitted method, or pass a number')


def check_size(value: Any, name: str) -> Any:
    """Return a size as a float, or "auto"; raise ValueError unless it is "auto" or a positive number."""
    if is_auto(value):
        return value
    if not is_positive(value):
        raise ValueError(f'{name} must be a positive number or "auto", got {value!r}')
    return float(value)

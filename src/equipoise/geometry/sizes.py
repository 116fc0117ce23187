"""Sizes of closed geometries: checks, and the size that "auto" chooses."""

from __future__ import annotations

from typing import Any

from ..arrays.namespace import is_positive

# The side of the square that a map in the plane takes, in kernel lengths, is about ROOM n^(1/4). Measured for t-SNE at
# its defaults, side/n^(1/4): digits, 300 and 1797 points, 10.9 and 19.9; MNIST, 1,000, 5,000, 20,000 and 70,000 points,
# 16.8, 19.3, 15.7 and 12.7.
ROOM = 15.0


def room(n: int, length: float) -> float:
    """Return the side of a square with the area that the map of n points takes in the plane, for a kernel's length."""
    return ROOM * float(n) ** 0.25 * length


def check_size(value: Any, name: str) -> Any:
    """Return a size as a float, or "auto"; raise ValueError unless it is "auto" or a positive number."""
    if isinstance(value, str) and value == "auto":
        return value
    if not is_positive(value):
        raise ValueError(f'{name} must be a positive number or "auto", got {value!r}')
    return float(value)

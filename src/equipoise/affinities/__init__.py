"""Compute affinities P from the distances between neighbours (docs/math.md, section 3)."""

from __future__ import annotations

from .fixed_kernels import FixedWidth
from .random_walk import RandomWalk, random_walk

__all__ = ["FixedWidth", "RandomWalk", "random_walk"]

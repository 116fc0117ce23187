"""Engines compute the two primitives, edges and field (docs/math.md, section 0). They know kernels, no methods."""

from __future__ import annotations

from .base import Engine, Field
from .exact import Exact
from .grid import Grid
from .reference import Reference

ENGINES = ("auto", "reference", "exact", "grid")


def choose_engine(name: str, n: int, d: int, all_pairs: bool) -> str:
    """Return the engine for n points in d dimensions: the one named, or for "auto" the fastest that can do it."""
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}, got {name!r}")
    if name == "grid" and d > 3:
        raise ValueError(f'engine="grid" works in 1, 2 or 3 dimensions, not {d}; use engine="exact"')
    if name != "auto":
        return name
    return "exact" if all_pairs or d > 3 or n < CROSSOVER[d] else "grid"


CROSSOVER = {1: 3000, 2: 3000, 3: 6000}  # points from which the mesh is used; a guess on the safe side, to be measured


def make_engine(name: str, n_threads: int, tol: float) -> Engine:
    """Return the engine called `name`."""
    if name == "reference":
        return Reference()
    return Grid(n_threads, tol) if name == "grid" else Exact(n_threads)


__all__ = ["ENGINES", "Engine", "Exact", "Field", "Reference", "choose_engine", "make_engine"]

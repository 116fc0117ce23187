"""Engines compute the two primitives, edges and field (docs/math.md, section 0). They know kernels, no methods."""

from __future__ import annotations

from .base import Engine, Field
from .exact import Exact
from .grid import Grid
from .reference import Reference

ENGINES = ("auto", "reference", "exact", "grid")


def make_engine(name: str, n_threads: int, tol: float = 0.02) -> Engine:
    """Return the engine called `name`; "auto" picks the fastest that fits the problem."""
    if name == "grid":
        return Grid(n_threads, tol)
    if name == "reference":
        return Reference()
    if name in ("auto", "exact"):
        return Exact(n_threads)
    raise ValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}, got {name!r}")


__all__ = ["ENGINES", "Engine", "Exact", "Field", "Reference", "make_engine"]

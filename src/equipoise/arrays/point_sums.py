"""Sums over the points of a map, of which a process may hold a part only (`distributed` has those over several)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .._types import Matrix
from .csr import sum_positive
from .namespace import array_namespace, spread, total


class EntrySum(Protocol):
    """A sum over the stored entries of a matrix, to which parts are added one after the other."""

    def add(self, part: slice, x: Any) -> None:
        """Add the values x of a slice of the stored entries; parts are in order."""
        ...

    def total(self) -> Any:
        """Return the sum over the entries of all processes."""
        ...


class PointSums(Protocol):
    """Reductions over all points of a map, given the rows that this process holds."""

    def count(self, U: Any) -> int:
        """Return the number of points of the map U."""
        ...

    def total(self, x: Any) -> Any:
        """Return the sum of all entries of x (n, ...)."""
        ...

    def entry_total(self, A: Matrix, f: Callable[[Any], Any]) -> float:
        """Return Σ f(a) over the positive entries a of the rows of a matrix."""
        ...

    def entry_sum(self, A: Matrix, start: float = 0.0) -> EntrySum:
        """Return an empty sum over the stored entries of the rows of a matrix; the number `start` is added to it."""
        ...

    def maximum(self, value: float) -> float:
        """Return the largest of the values of all processes."""
        ...

    def spread(self, U: Any) -> float:
        """Return the largest of the standard deviations of the columns of U (n, d)."""
        ...

    def squared_norm(self, x: Any) -> float:
        """Return the sum of the squares of all entries of x (n, d)."""
        ...

    def all_finite(self, U: Any) -> bool:
        """Return whether no entry of U (n, d) is NaN or infinite."""
        ...


class RunningSum:
    """A sum over all entries of a matrix that this process holds."""

    def __init__(self, start: float):
        self._total: Any = start

    def add(self, part: slice, x: Any) -> None:
        self._total += total(x)

    def total(self) -> Any:
        return self._total


class WholeMap:
    """Reductions of a process that holds all points."""

    def count(self, U: Any) -> int:
        return int(U.shape[0])

    def total(self, x: Any) -> Any:
        return total(x)

    def entry_total(self, A: Matrix, f: Callable[[Any], Any]) -> float:
        return sum_positive(A, f)

    def entry_sum(self, A: Matrix, start: float = 0.0) -> RunningSum:
        return RunningSum(start)

    def maximum(self, value: float) -> float:
        return value

    def spread(self, U: Any) -> float:
        return spread(U)

    def squared_norm(self, x: Any) -> float:
        return float((x**2).sum())

    def all_finite(self, U: Any) -> bool:
        return bool(array_namespace(U).isfinite(U).all())


WHOLE_MAP: PointSums = WholeMap()

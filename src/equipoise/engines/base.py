"""What an engine promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._types import Array, Matrix
from ..arrays.namespace import host
from ..kernels import Kernel


class Field(NamedTuple):
    """Potential Φ_i = Σ_{j≠i} c_j k(d2_ij) and its gradient ∇Φ_i = 2 Σ_j c_j k'(d2_ij)(y_i − y_j)."""

    potential: Array  # (n,), or (n, m) for m charge vectors
    gradient: Array  # (n, d), or (n, m, d)


def charge_columns(charges: Array | None, n: int) -> tuple[Array, Array]:
    """Return the charges, one each by default, and the same as columns (n, m)."""
    c = np.ones(n) if charges is None else np.asarray(charges, dtype=np.float64)
    return c, np.ascontiguousarray(c.reshape(n, -1))


class OnHost:
    """What an engine has that works on arrays of NumPy."""

    dtype: type[np.floating]

    def here(self, Y: Array) -> Array:
        return np.asarray(Y, dtype=self.dtype)

    def holding(self, objective: Any) -> Any:
        return objective

    def answering(self, objective: Any) -> Any:
        return objective

    def which(self, holds: Any) -> Any:
        return host(holds).nonzero()[0]

    def at_once(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        return first(), second()

    def hasten(self, step: Callable[[Any], None], key: object, state: Any, count: int, least: float) -> int:
        return 0

    def rest(self) -> None:
        """Do nothing: it keeps nothing."""


class Memoryless(OnHost):
    """What an engine has that learns nothing from the maps it sees."""

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def state(self) -> list[dict[str, Any]]:
        return []

    def restore(self, state: list[dict[str, Any]]) -> None:
        if state:
            raise ValueError(f"{type(self).__name__} remembers nothing")


class Engine(Protocol):
    """The two primitives. Y is (n, d), float32 or float64: its type is the precision of the arithmetic."""

    name: str
    sparse: bool  # whether it wants P on the nearest neighbours alone
    dtype: type[np.floating]  # the precision it optimises in
    local: bool  # whether it gains from neighbours in the map being neighbours in memory

    @property
    def settings(self) -> dict[str, Any]:
        """What its answers depend on, beside what it is asked."""
        ...

    def state(self) -> list[dict[str, Any]]:
        """Return, in plain values, what it has learnt from the maps that it saw and its next answers depend on."""
        ...

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Know what `state` says, and nothing else."""
        ...

    def here(self, Y: Array) -> Any:
        """Return an array as the engine has it, in its precision: it answers in kind."""
        ...

    def holding(self, objective: Any) -> Any:
        """Return an objective with what it holds where the engine works."""
        ...

    def answering(self, objective: Any) -> Any:
        """Return an objective that can be asked about arrays of NumPy."""
        ...

    def which(self, holds: Any) -> Any:
        """Return where a condition on points (n,) holds, as numbers of rows to look at one by one."""
        ...

    def at_once(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        """Return what two questions give that do not wait for each other, asked at the same time where it can."""
        ...

    def hasten(self, step: Callable[[Any], None], key: object, state: Any, count: int, least: float) -> int:
        """Take up to `count` steps from a state at once, where it can, and return how many; none of them is reported.

        `step` takes one, `key` tells different ones apart; the widest side of the map must stay above `least`.
        """
        ...

    def rest(self) -> None:
        """Let go of what it kept for a descent that has ended."""
        ...

    def include(self, P: Matrix, d: int) -> None:
        """Take note of the pairs that P stores, the neighbours in the data, for maps in d dimensions.

        What is summed in full has no need to.
        """
        ...

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        """Return Ψ = Σ_ij A_ij ψ_b(d2_ij) and E_i = Σ_j A_ij k^b k' (y_i − y_j), (n, d).

        ψ_b is an antiderivative, ψ_b' = k^b k': with e = b + 1, log k at e = 0, (k^e − 1)/e near it, else k^e / e.
        A is dense (n, n) with its diagonal ignored, or CSR. Without `potential` Ψ is NaN.
        """
        ...

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        """Return the field of charges c, (n,) or (n, m); one at every point by default."""
        ...

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        """Return the field of the points Y as a function of targets (m, d), which feel every point of Y."""
        ...

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        """Return E_i = Σ_j A_ij k^b k' (t_i − y_j), (m, d), from targets (m, d) along A, CSR (m, n)."""
        ...

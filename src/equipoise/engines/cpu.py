"""What the engines on the CPU share: arrays in host memory, single steps, compiled kernels, edges over stored pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import Array
from ..arrays.csr import is_sparse
from ..arrays.namespace import host


class HostPlacement:
    """NumPy arrays in host memory. Sparse matrices stay where they are: engines accept them from either side."""

    device = "cpu"

    def to_device(self, array: Any, dtype: Any = None) -> Any:
        return array if is_sparse(array) else np.asarray(host(array), dtype=dtype)

    def indices_where(self, mask: Any) -> Array:
        return host(mask).nonzero()[0]

    def concurrently(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        return first(), second()


class SingleSteps:
    """No steps are recorded: the optimiser takes each of them itself."""

    def replay_steps(self, step: Callable[[Any], None], key: object, state: Any, count: int, min_extent: float) -> int:
        return 0

    def free_buffers(self) -> None:
        """Do nothing: there are no buffers."""


HOST = HostPlacement()


class CpuEngine:
    """Placement and stepper of an engine that computes with NumPy arrays."""

    dtype: type[np.floating]
    placement = HOST
    stepper = SingleSteps()


class StatelessEngine(CpuEngine):
    """An engine whose results depend on its arguments only: there is nothing to store in checkpoints."""

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def state(self) -> list[dict[str, Any]]:
        return []

    def restore(self, state: list[dict[str, Any]]) -> None:
        if state:
            raise ValueError(f"{type(self).__name__} has no state to restore")


def charge_columns(charges: Array | None, n: int) -> tuple[Array, Array]:
    """Return the charges, 1 by default, in the shape they were given and as columns (n, m), in float64."""
    c = np.ones(n) if charges is None else np.asarray(charges, dtype=np.float64)
    return c, np.ascontiguousarray(c.reshape(n, -1))

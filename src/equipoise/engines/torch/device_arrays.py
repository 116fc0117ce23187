"""Moves arrays to a device, and holds points with their charges there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from ..._types import Array
from ...arrays.device_csr import Rows
from ...arrays.namespace import is_tensor, to_numpy
from ..cpu import WHOLE_MAP
from .replay import CudaGraph

Concurrently = Callable[[Callable[[], Any], Callable[[], Any]], tuple[Any, Any]]


def in_turn(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
    """Return the results of two functions, called one after the other."""
    return first(), second()


def like_input(like: Any, result: torch.Tensor) -> Any:
    """Return the result as a tensor if `like` is a tensor, otherwise as a NumPy array in float64."""
    return result if is_tensor(like) else result.double().cpu().numpy()


class DevicePlacement:
    """Moves arrays to a device, as float32 tensors or CSR matrices (`Rows`); works also while a step is recorded."""

    sums = WHOLE_MAP

    def __init__(self, device: torch.device, graph: CudaGraph):
        self.device, self._graph = device.type, graph

    def to_device(self, array: Any, dtype: Any = None) -> Any:
        """Return a NumPy array as a float32 tensor on this device, and a SciPy matrix as `Rows` on this device.

        A tensor is returned unchanged if `dtype` is None. With any other `dtype`, it is moved to this device and
        converted to float32. `Rows` are returned unchanged; they require `dtype` None.
        """
        if sparse.issparse(array):
            return Rows.of(array, torch.device(self.device))
        if dtype is None and not isinstance(array, np.ndarray):
            return array
        return torch.as_tensor(array, dtype=torch.float32, device=self.device).contiguous()

    def indices_where(self, mask: Any) -> Any:
        """Return the indices at which a mask (n,) is true.

        While a step is recorded, the mask cannot be read. Then return no indices, and record that the step sets the
        flag of the CUDA graph, which stops the replay, if any entry is true.
        """
        if self._graph.recording:
            self._graph.flag_where(mask)
            return ()
        return to_numpy(mask).nonzero()[0]

    def column_points(self, Y: Any) -> Any:
        return Y

    def concurrently(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        return self._graph.concurrently(first, second) if self._graph.recording else in_turn(first, second)


class DeviceSource:
    """Holds points Y (n, d), their charges and their bounding box on a device.

    Attributes
    ----------
    box : tensor (2, d)
        Lowest and highest corner of the bounding box.
    amounts : tensor (n, m) or None
        The charges; None if every charge is 1.
    concurrently : callable
        Calls two independent functions, as `Placement.concurrently` does; by default one after the other.
    add_up : callable or None
        Adds the integers (m, nodes) of a mesh over all processes; None if this process holds all points.
    """

    add_up: Callable[[torch.Tensor], torch.Tensor] | None = None

    def __init__(self, Y: torch.Tensor, charges: torch.Tensor | None, concurrently: Concurrently = in_turn):
        self.Y, self.concurrently = Y.contiguous(), concurrently
        self.charged = charges is not None
        self.shape = (len(Y),) if charges is None else tuple(charges.shape)
        self._charges = None if charges is None else charges[:, None] if charges.ndim == 1 else charges
        self.box = self._box()

    def _box(self) -> torch.Tensor:
        if self.Y.is_cuda and self.Y.shape[1] <= 3:
            from . import fused

            return fused.bounding_box(self.Y)
        return torch.stack(torch.aminmax(self.Y, dim=0))

    @cached_property
    def _corners(self) -> Array:
        """The box on the host; reading it waits for the device."""
        return self.box.cpu().numpy().astype(np.float64)

    @property
    def low(self) -> Array:
        return self._corners[0]

    @property
    def high(self) -> Array:
        return self._corners[1]

    def widen(self, margin: Array) -> None:
        """Add a margin (d,) on either side of the box."""
        self.box = torch.as_tensor(np.stack([self.low - margin, self.high + margin]), device=self.Y.device)
        del self._corners

    @property
    def charges(self) -> torch.Tensor:
        """The charges (n, m); if none were given, ones (n, 1)."""
        return torch.ones((len(self.Y), 1), device=self.Y.device) if self._charges is None else self._charges

    @property
    def amounts(self) -> torch.Tensor | None:
        return self._charges

    @property
    def count(self) -> int:
        """The number of points of all processes."""
        return len(self.Y)

    def sums(self, x: torch.Tensor) -> torch.Tensor:
        """Return the column sums (m,) of x (n, m) over the points of all processes, in float64."""
        return x.double().sum(dim=0)

    def whole(self) -> DeviceSource:
        """Return the source with the points of all processes."""
        return self

    def own_rows(self, x: torch.Tensor) -> torch.Tensor:
        """Return the rows of the points of this process, from x with rows for all points."""
        return x

"""The engine of one rank in PyTorch, whose rows of the affinities and points are a part of the map.

As in rank_mesh.py, each rank spreads its own points to a mesh of integers, which all ranks add up; every rank convolves
the whole mesh and interpolates at its own points (docs/math.md, section 22). For a kernel with a near part, and for
direct sums, every rank gathers all points and sums these parts for all of them, so that groups of targets do not depend
on the number of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..engines.base import Field, Stepper, Traits
from ..engines.cpu import SingleSteps
from ..engines.mesh.mesh_engine import ToleranceRecord
from ..engines.mesh.plan import check_span
from ..engines.torch.device_arrays import DevicePlacement, DeviceSource
from ..engines.torch.device_plan import rungs_with_room
from ..engines.torch.direct import Direct
from ..engines.torch.edges import row_edges
from ..engines.torch.engine import Torch
from ..engines.torch.replay import CudaGraph
from ..kernels import Kernel
from .halo import Halo
from .tensor_map import TensorHalo, TensorMap


class RankDevicePlacement(DevicePlacement):
    """Device memory, with sums over the points of all ranks, and edges to points of other ranks."""

    def __init__(self, device: torch.device, graph: CudaGraph, sums: TensorMap, column_points: Callable[[Any], Any]):
        super().__init__(device, graph)
        self.sums, self._column_points = sums, column_points

    def column_points(self, Y: Any) -> Any:
        return self._column_points(Y)


class RankDeviceSource(DeviceSource):
    """The own points of this rank with their charges, and the box around the points of all ranks."""

    def __init__(self, Y: torch.Tensor, charges: torch.Tensor | None, shared: TensorMap):
        self.shared = shared
        self._whole: DeviceSource | None = None
        super().__init__(Y, charges)
        self.add_up = shared.exchange.add

    def _box(self) -> torch.Tensor:
        if len(self.Y):
            low, high = super()._box()
        else:  # this rank has no points
            low, high = (self.Y.new_full((self.Y.shape[1],), sign * torch.inf) for sign in (1, -1))
        low, high = self.shared.exchange.minimum(torch.stack([low, -high]))
        return torch.stack([low, -high])

    @property
    def count(self) -> int:
        return self.shared.partition.n

    def sums(self, x: torch.Tensor) -> torch.Tensor:
        return self.shared.columns(x)

    def whole(self) -> DeviceSource:
        if self._whole is None:
            charges = None if self._charges is None else self.shared.gather_tensor(self._charges)
            self._whole = DeviceSource(self.shared.gather_tensor(self.Y), charges)
        return self._whole

    def own_rows(self, x: torch.Tensor) -> torch.Tensor:
        return x[self.shared.partition.own]


class RankTorch(Torch):
    """An engine in PyTorch that computes edges and field at the points of one rank, from the points of all ranks.

    Maps are the rows of own points (own, d), tensors on the device, and affinities the rows (own, `halo.size`) that
    `Halo.localized` returns. All ranks call the same functions in the same order, on devices of the same model.

    Parameters
    ----------
    shared : TensorMap
    halo : Halo
    n_threads : int
    tol : float
        The maximum relative error of the force.
    device : str
        "cpu" or "cuda"; the latter is the current GPU of PyTorch.
    """

    traits = Traits("torch", np.float32, needs_sparse_P=True, gains_from_locality=False)

    def __init__(self, shared: TensorMap, halo: Halo, n_threads: int, tol: float, device: str):
        super().__init__(n_threads, tol, device)
        self.shared, self.halo = shared, halo
        self._neighbors = TensorHalo(halo, shared.exchange, self.device)
        self.placement = RankDevicePlacement(self.device, self._graph, shared, self._neighbors.extended)

    @property
    def stepper(self) -> Stepper:  # type: ignore[override]
        return SingleSteps()  # a recorded step could not wait for other ranks

    def edges(self, Y: Any, A: Any, kernel: Kernel, b: float, *, potential: bool) -> tuple[Any, Any]:
        points = self._neighbors.extended(Y)
        psi, force = row_edges(points, A, self._edge_lookup(kernel, b), potential=potential)
        return (self.shared.total(psi) if potential else np.nan), force

    def field(self, Y: Any, kernel: Kernel, charges: Any = None) -> Field:
        source = self._source(Y, charges)
        transform: Any = self._transform(kernel, source)
        if isinstance(transform, Direct):
            every = source.whole()
            potential, gradient = (source.own_rows(part) for part in transform.solve(every, self.n_threads)(every.Y))
        else:
            potential, gradient = transform.solve(source, self.n_threads)(source.Y)
        result: Any = potential.reshape(source.shape), gradient.reshape(*source.shape, source.Y.shape[1])
        return Field(*result)

    def _source(self, Y: Any, charges: Any) -> RankDeviceSource:
        return RankDeviceSource(
            self._to_float32(Y), None if charges is None else self._to_float32(charges), self.shared
        )

    def _transform(self, kernel: Kernel, source: RankDeviceSource) -> Any:  # type: ignore[override]
        """Return the transform for this map; first, if needed, plan a new mesh and check the tolerance."""
        record = self._record(kernel, source.charged, source.Y.shape[1])
        span = (source.high - source.low).astype(np.float32)
        check_span(span)
        if not record.rungs or not self._inside(kernel, record, span):
            record.rungs = rungs_with_room(kernel, self._pair_error(record.level), span.astype(np.float64))
        if self._check_due(record, record.rungs, record.checked):
            record.fields, record.checked = 0, record.rungs
            self._meet_tolerance_together(kernel, source, record)
        record.fields += 1
        return self._planned(kernel, source.count, record.rungs, record)

    def _meet_tolerance_together(self, kernel: Kernel, source: RankDeviceSource, record: ToleranceRecord) -> None:
        """Refine or coarsen the plan as rank 0 does; every rank measures the error of the whole map.

        The errors may differ in their last digits between ranks, but not the plan or when the next check is due.
        """
        self._meet_tolerance(kernel, source.whole(), record)
        found = [int(record.level), bool(record.double), bool(record.ample)]
        record.level, record.double, record.ample = self.shared.group.broadcast_value(found)

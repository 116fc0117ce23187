"""The two primitives in PyTorch: on a GPU, or on the CPU, where they are tested."""

from __future__ import annotations

import weakref
from copy import copy
from typing import Any

import numpy as np
import torch
from scipy import fft, sparse

from ..._types import Array, Matrix
from ...arrays import is_tensor
from ...kernels import Kernel
from ..base import Field
from ..grid import RUNGS, Grid
from ..plan import BEYOND, DOUBLE, Plan, mesh_width
from ..tables import tabulate
from ..transform import Source
from .direct import Direct
from .lookup import Lookup
from .mesh import Mesh
from .source import DeviceSource, as_given
from .stored import Rows, stored_edges

NODES = 2**24  # of a mesh; beyond, direct sums take its place: an FFT of the padded mesh would fill the memory; chosen
PAIRS_A_NODE = 4  # that cost no more than a node of the mesh; chosen
DIRECT = Plan(0.0, (), 0.0, np.float32)


class Torch(Grid):
    """Edges over the stored pairs and field on a mesh, on a device; force error at most `tol`, relative.

    Kernels are read from tables, a user's own too. No kernel is split: where no mesh carries it, and in more than three
    dimensions, the field is summed over all pairs. Sums run in a fixed order, or over whole numbers: the same bytes
    every time on one device. Maps in float64, and matrices that are not sparse, are summed on the CPU as by "exact".
    """

    name = "torch"

    def __init__(self, n_threads: int, tol: float, device: str):
        super().__init__(n_threads, tol)
        self.device = torch.device(device)
        self._rows: dict[int, Rows] = {}
        self._lookups: dict[tuple[Kernel, float], Lookup] = {}

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "device": self.device.type}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "device": self.device.type}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_threads"], state["tol"], state["device"])  # type: ignore[misc]
        self.restore(state["state"])

    def here(self, Y: Array) -> Any:
        return torch.as_tensor(Y, dtype=torch.float32, device=self.device)

    def holding(self, objective: Any) -> Any:
        """Return an objective with all that it holds on the device: vectors as tensors, sparse matrices as rows."""
        there, known = copy(objective), {}
        for name, value in vars(objective).items():
            if sparse.issparse(value):
                known[id(value)] = known.get(id(value)) or Rows(value, self.device)
                setattr(there, name, known[id(value)])
            elif isinstance(value, np.ndarray) and value.ndim <= 2 and value.dtype.kind == "f":
                setattr(there, name, self.here(value))
        return there

    def edges(self, Y: Any, A: Any, kernel: Kernel, b: float, *, potential: bool) -> tuple[Any, Any]:
        if not is_tensor(Y) and (Y.dtype == np.float64 or not sparse.issparse(A)):
            return self._exact.edges(Y, A, kernel, b, potential=potential)
        if (kernel, b) not in self._lookups:
            self._lookups[kernel, b] = Lookup(self._table(kernel, b), self.device)
        rows = A if isinstance(A, Rows) else self._on_device(A)
        psi, force = stored_edges(self.here(Y), rows, self._lookups[kernel, b], potential=potential)
        return (psi if is_tensor(Y) else float(psi)) if potential else np.nan, as_given(Y, force)

    def field(self, Y: Any, kernel: Kernel, charges: Any = None) -> Field:
        source = DeviceSource(self.here(Y), None if charges is None else self.here(charges))
        transform = self._transform(kernel, source)
        potential, gradient = transform.solve(source, self.n_threads)(source.Y)
        potential = potential - transform.at_zero * source.charges  # the mesh holds the point itself
        shape = source.shape
        return Field(as_given(Y, potential.reshape(shape)), as_given(Y, gradient.reshape(*shape, source.Y.shape[1])))

    def _direct(self, kernel: Kernel, source: Any) -> Any:
        return self._make(kernel, DIRECT).solve(source, self.n_threads)

    def _on_device(self, A: Matrix) -> Rows:
        """Return a matrix on the device, where it stays as long as it is in use here."""
        if id(A) not in self._rows:
            self._rows[id(A)] = Rows(A, self.device)
            weakref.finalize(A, self._rows.pop, id(A), None)
        return self._rows[id(A)]

    def _source(self, Y: Array, charges: Array | None) -> Source:
        return Source(Y, charges)

    def _plan(self, kernel: Kernel, source: Source, rungs: tuple[int, ...], level: int) -> Plan:
        if len(rungs) > 3:
            return DIRECT
        span = tuple(kernel.length * 2.0 ** (rung / RUNGS) for rung in rungs)
        h = mesh_width(kernel, self.tol * 2 ** (level / 2), len(rungs))
        if h == 0:
            return DIRECT
        h = min(h, max(span) / 8)
        size = tuple(fft.next_fast_len(int(np.ceil(s / h)) + BEYOND, real=True) for s in span)
        nodes, pairs = float(np.prod(size)), float(len(source.Y)) ** 2
        if nodes > NODES or pairs < PAIRS_A_NODE * nodes:
            return DIRECT
        small = nodes <= DOUBLE[0] and len(source.Y) <= DOUBLE[1]
        return Plan(h, size, 0.0, np.float64 if small or max(span) < kernel.length else np.float32)

    def _made(self, kernel: Kernel, of: Plan) -> Any:
        if of != DIRECT:
            return Mesh(kernel, of, self.device)
        ends = 1e-6 * kernel.length, 1e6 * kernel.length
        return Direct(kernel, tabulate(kernel.value, kernel.slope, *ends, kernel.kink), self.device)

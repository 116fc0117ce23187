"""Direct sums in C++ in curved spaces: the torus and the hyperbolic plane, and edges over stored pairs there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .. import _core
from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import compiled_pattern, entry_values
from ..geometry import Pairs
from ..kernels import Kernel
from .base import Field
from .cpu import CompiledKernels, CpuEngine, StoredEdges, charge_columns
from .exact import Exact
from .reference import Reference

NO_POTENTIAL = np.empty(0)


@tagged("engines.curved.CurvedExact")
class CurvedExact(CpuEngine):
    """Direct sums in the precision of Y, accumulated in float64, in a curved space.

    The reference engine computes the sums of spaces without compiled code, and in float64 those of kernels without
    compiled code. In float32 such kernels are read from a table.

    Parameters
    ----------
    n_threads : int
    pairs : Pairs
        How points are compared.
    """

    traits = Exact.traits

    def __init__(self, n_threads: int, pairs: Pairs):
        self.n_threads, self.pairs = n_threads, pairs
        self._space, self._numpy = pairs.native(), Reference(pairs)
        self._edges = None if self._space is None else CurvedEdges(n_threads, pairs)
        self._compiled = CurvedKernels(pairs)

    def __getstate__(self) -> dict[str, Any]:
        return {"n_threads": self.n_threads, "pairs": self.pairs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_threads"], state["pairs"])  # type: ignore[misc]

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        Y = np.ascontiguousarray(Y)
        if self._edges is None or (kernel.native() is None and Y.dtype == np.float64):
            return self._numpy.edges(Y, A, kernel, b, potential=potential)
        native, b = (kernel.native(), b) if kernel.native() is not None else self._edges.tabulated(kernel, b)
        return CurvedSums(self._space, native, self.n_threads).edges(Y, Y, A, b, potential=potential)

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        Y = np.ascontiguousarray(Y)
        return self._field(kernel, charges, Y, Y) or self._numpy.field(Y, kernel, charges)

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        Y = np.ascontiguousarray(Y)

        def at(targets: Array) -> Field:
            same = np.array(targets, dtype=Y.dtype)  # a copy: a point that coincides with a target contributes too
            return self._field(kernel, charges, same, Y) or self._numpy.freeze(Y, kernel, charges)(targets)

        return at

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        if self._edges is None:
            return self._numpy.edges_to(targets, Y, A, kernel, b)
        return self._edges.edges_to(targets, Y, A, kernel, b)

    def _field(self, kernel: Kernel, charges: Array | None, targets: Array, Y: Array) -> Field | None:
        """Return the field of Y at the targets; None if there is no compiled code."""
        if self._space is None or (kernel.native() is None and Y.dtype == np.float64):
            return None
        c, columns = charge_columns(charges, len(Y))
        sums = CurvedSums(self._space, self._compiled(kernel), self.n_threads)
        potential, half = sums.field(targets, Y, columns)
        shape = (len(targets), *c.shape[1:])
        return Field(potential.reshape(shape), (2 * half).reshape(*shape, Y.shape[1]))


class CurvedKernels(CompiledKernels):
    """Kernels as compiled code in a curved space; a kernel without compiled code is read from a table."""

    def __init__(self, pairs: Pairs):
        super().__init__()
        self.pairs = pairs

    def __call__(self, kernel: Kernel) -> _core.Kernel:
        native = kernel.native()
        return super().__call__(self.pairs.radial(kernel)) if native is None else native


class CurvedEdges(StoredEdges):
    """Edges over the stored pairs of a CSR matrix in a curved space, in float32.

    Parameters
    ----------
    n_threads : int
    pairs : Pairs
        How points are compared; a space with compiled code.
    """

    def __init__(self, n_threads: int, pairs: Pairs):
        super().__init__(n_threads, lambda threads: CurvedExact(threads, pairs))
        self.pairs, self._space = pairs, pairs.native()

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        if Y.dtype == np.float64 or not sparse.issparse(A):
            return self.exact.edges(Y, A, kernel, b, potential=potential)
        native, b = self.native(kernel, b)
        Y = np.ascontiguousarray(Y)
        return CurvedSums(self._space, native, self.n_threads).edges(Y, Y, A, b, potential=potential)

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        native, b = self.native(kernel, b)
        targets, Y = (np.array(V, dtype=np.float32, order="C") for V in (targets, Y))
        return CurvedSums(self._space, native, self.n_threads).edges(targets, Y, A, b, potential=False)[1]

    def tabulated(self, kernel: Kernel, b: float) -> tuple[_core.Kernel, float]:
        """Return a table of ψ_b and k^b k' as a compiled kernel, and the exponent −1 with which to use it."""
        return self._compiled.edges(self.pairs.radial(kernel), b)

    def native(self, kernel: Kernel, b: float) -> tuple[_core.Kernel, float]:
        return self.tabulated(kernel, b) if self._space.hyperbolic else super().native(kernel, b)


class CurvedSums(NamedTuple):
    """Compiled sums of one kernel in one curved space."""

    space: Any  # a _core.Space
    kernel: Any  # a _core.Kernel
    n_threads: int

    def edges(self, targets: Array, Y: Array, A: Matrix, b: float, *, potential: bool) -> tuple[float, Array]:
        """Return Ψ and E of the targets, as `Engine.edges` does."""
        if A.shape != (len(targets), len(Y)):
            raise ValueError(f"A must have shape ({len(targets)}, {len(Y)}) for the points of Y, got {A.shape}")
        psi = np.empty(len(targets)) if potential else NO_POTENTIAL
        force = np.empty(targets.shape)
        if sparse.issparse(A):
            pattern, values = compiled_pattern(A), entry_values(A)
            _core.curved_edges_sparse(*self[:2], b, pattern, values, targets, Y, psi, force, self.n_threads)
        else:
            _core.curved_edges_dense(*self[:2], b, A, Y, psi, force, self.n_threads)
        return (float(psi.sum()) if potential else np.nan), force

    def field(self, targets: Array, Y: Array, charges: Array) -> tuple[Array, Array]:
        """Return Φ (t, m) and ½∇Φ (t, m, d) of charges (n, m) at targets (t, d).

        If the targets are the array Y itself, each point is left out of its own sum.
        """
        potential = np.empty((len(targets), charges.shape[1]))
        half = np.empty((*potential.shape, Y.shape[1]))
        _core.curved_field(*self[:2], charges, targets, Y, potential, half, self.n_threads)
        return potential, half

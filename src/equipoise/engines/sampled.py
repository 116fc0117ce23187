"""Estimates the field without bias from stored pairs and random partners, in linear time and in any dimension.

docs/math.md, section 13, has the equations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import entry_rows, make_csr, symmetrized
from ..kernels import Kernel
from .base import Field, Traits, require_no_state
from .cpu import CompiledKernels, CpuEngine, StoredEdges, charge_columns
from .exact import Exact

# Random partners of a point. Measured: the exact loss of t-SNE in d = 5 at its defaults, with 64, 256, 512 and all
# partners, is 0.636, 0.632, 0.630, 0.630 for digits and 1.419, 1.399, 1.394, 1.387 for 6,000 rows of MNIST; with 256,
# 512 and 1024 it is 1.912, 1.899, 1.889 for 20,000 rows of MNIST.
PARTNERS = 512
# Number of points from which partners are sampled in more than three dimensions. With 600 points an iteration takes as
# long as with all pairs; with 3000, all pairs take five times as long (26 ms on one core, MNIST, d = 5; measured).
# Below that, exact sums are affordable.
HIGH_CROSSOVER = 3000
SOURCES = 2**15  # points whose field acts on new points: 25 steps of 1000 rows take 1 s, at 1.2 ns per pair in d = 5
NO_PAIRS = np.empty(0, np.int64), np.empty(0, np.int32)  # indptr and indices


@tagged("engines.sampled.Sampled")
class Sampled(CpuEngine):
    """An engine that sums edges over the stored entries of a matrix and estimates the field from a sample of the pairs.

    The sample consists of the pairs passed to `sum_exactly` and of random partners of every point. The partners of
    point i are the points i + o modulo n, with random offsets o that are the same for every point. The offsets do not
    change during a run, so that the estimated loss is a function of Y and the forces are its gradient. If new offsets
    were drawn in every iteration, their errors would average out, but the optimiser, which adapts a step size (gain)
    for every coordinate, would treat the noise as overshooting and slow the run down (docs/math.md, section 13).

    Parameters
    ----------
    n_threads : int
    seed : int
    partners : int, default=512
        Approximate number of random partners of every point. If n − 1 is at most `partners`, all other
        points are partners.
    sources : int, default=32768
        Maximum number of points of the embedding whose field acts on new points.
    """

    traits = Traits("sampled", np.float32, needs_sparse_P=True, gains_from_locality=False)

    def __init__(self, n_threads: int, seed: int, partners: int = PARTNERS, sources: int = SOURCES):
        self.n_threads = n_threads
        self.seed = seed
        self.partners = partners
        self.sources = sources
        self._edges = StoredEdges(n_threads, Exact)
        self._compiled = CompiledKernels()
        self._always = NO_PAIRS
        self._graph: _core.Csr | None = None  # the same pairs, checked by the core

    @property
    def settings(self) -> dict[str, Any]:
        return {"seed": int(self.seed), "partners": self.partners}

    def state(self) -> list[dict[str, Any]]:
        return []  # the sample depends on the settings only

    def restore(self, state: list[dict[str, Any]]) -> None:
        require_no_state(self, state)

    def __getstate__(self) -> dict[str, Any]:
        names = ("n_threads", "seed", "partners", "sources", "_always")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(*(state[name] for name in ("n_threads", "seed", "partners", "sources")))  # type: ignore[misc]
        self._set_always(*state["_always"])

    def _set_always(self, indptr: Array, indices: Array) -> None:
        """Set the pairs that every sample includes, as CSR indices; raise ValueError if an index is out of range."""
        self._graph = _core.Csr(indptr, indices, len(indptr) - 1) if len(indptr) else None
        self._always = indptr, indices

    def sum_exactly(self, P: Matrix, d: int) -> None:
        """From now on, include in every sample each pair that P, CSR (n, n), stores in either direction.

        These pairs are neighbours in the data, and most neighbours in the embedding are among them. The pairs left to
        chance are distant ones, whose contribution to the field is smooth.
        """
        pairs = symmetrized(make_csr(np.ones(P.nnz, np.float32), P.indices, P.indptr, P.shape), self.n_threads)
        off = pairs.indices != entry_rows(pairs)
        stored = np.concatenate([[0], np.cumsum(off, dtype=np.int64)])
        self._set_always(stored[pairs.indptr], pairs.indices[off])

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        return self._edges.edges(Y, A, kernel, b, potential=potential)

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        return self._edges.edges_to(targets, Y, A, kernel, b)

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        Y = np.ascontiguousarray(Y)
        c, columns = charge_columns(charges, len(Y))
        offsets, weights = draw_offsets(len(Y), self.partners, self.seed)
        graph = self._graph if len(offsets) < len(Y) - 1 else None
        potential, half = np.empty(columns.shape), np.empty((*columns.shape, Y.shape[1]))
        native = self._compiled(kernel)
        _core.field_offsets(native, columns, Y, offsets, weights, graph, potential, half, self.n_threads)
        return Field(potential.reshape(c.shape), (2 * half).reshape(*c.shape, Y.shape[1]))

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        """Return a function that gives the field of Y at targets (t, d).

        If Y has n points, more than `sources`, a random sample of `sources` points represents all of them, with charges
        multiplied by n / `sources`. The sample is the same for every target, so that the result for a target does not
        depend on the other targets.
        """
        n, d = Y.shape
        c, columns = charge_columns(charges, n)
        if n > self.sources:
            chosen = np.sort(np.random.default_rng(self.seed).choice(n, self.sources, replace=False))
            Y, columns = Y[chosen], columns[chosen] * (n / self.sources)
        Y, native = np.ascontiguousarray(Y), self._compiled(kernel)

        def at(targets: Array) -> Field:
            T = np.ascontiguousarray(targets, dtype=Y.dtype)
            potential, half = np.empty((len(T), columns.shape[1])), np.empty((len(T), columns.shape[1], d))
            _core.field_at(native, columns, T, Y, potential, half, self.n_threads)
            shape = (len(T), *c.shape[1:])
            return Field(potential.reshape(shape), (2 * half).reshape(*shape, d))

        return at


def draw_offsets(n: int, partners: int, seed: int) -> tuple[Array, Array]:
    """Return random offsets from 1 to n − 1, each o together with n − o, and their weights, which sum to n − 1.

    Because o and n − o are drawn together, a pair acts on both of its points or on neither, and the forces of unit
    charges sum to zero. About `partners` offsets are drawn, at least one pair (o, n − o). For even n the offset n/2 is
    its own opposite; it is always included, with weight 1. All offsets are returned, with weight 1, if `partners` is at
    least n − 1.
    """
    pairs, drawn = (n - 1) // 2, max(1, partners // 2)
    if n - 1 <= partners:
        return np.arange(1, n), np.ones(n - 1)
    half = 1 + np.sort(np.random.default_rng(seed).choice(pairs, drawn, replace=False, shuffle=False))
    middle = np.array([n // 2] if n % 2 == 0 else [], dtype=np.int64)
    offsets = np.concatenate([half, n - half[::-1], middle])
    return offsets, np.concatenate([np.full(2 * drawn, pairs / drawn), np.ones(len(middle))])

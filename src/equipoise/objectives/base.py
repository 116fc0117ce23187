"""What an objective promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from .._types import Array, Matrix
from ..arrays.csr import is_sparse
from ..arrays.namespace import is_tensor
from ..engines import Engine, Placement
from ..kernels import Kernel


class Balance(NamedTuple):
    """The two forces on each point, and the loss; attraction + repulsion = −gradient."""

    attraction: Array  # (n, d)
    repulsion: Array  # (n, d)
    loss: float  # NaN when it was not asked for
    stiffness: float  # total weight of the attraction; 1 for KL on joint affinities. The learning rate falls with it


def sum_positive(P: Matrix, f: Callable[[Array], Array]) -> float:
    """Return Σ f(p) over the entries p > 0 of P in float64, a block of rows at a time."""
    total, values = 0.0, P.data if is_sparse(P) else P
    if is_tensor(values):
        return float(f(values[values > 0].double()).sum())
    step = max(1, 2**20 // max(1, values[:1].size))
    for start in range(0, len(values), step):
        block = values[start : start + step]
        total += float(f(block[block > 0].astype(np.float64)).sum())
    return total


class Objective(Protocol):
    """A loss over embeddings Y (n, d), evaluated through any engine's edges and field."""

    @property
    def affinities(self) -> Matrix: ...
    @property
    def kernel(self) -> Kernel: ...
    @property
    def mass(self) -> float:
        """Σ P: 1 for joint affinities, n for conditional ones; loss and gradient grow with it."""
        ...

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        """Return both forces on every point, and the loss if asked for.

        Exaggeration multiplies P in the attraction alone; the loss is always the stated one.
        """
        ...

    def permuted(self, order: Array) -> Objective:
        """Return the same objective for the points in another order."""
        ...

    def to(self, placement: Placement) -> Objective:
        """Return a copy of the objective with its arrays where a placement puts them."""
        ...

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> Callable[[Array, Matrix], Array]:
        """Return the force (m, d) of the finished map Y on new points, from their places and affinities p_{j|i}.

        Exaggeration is that of the map: it multiplies the affinities in the attraction alone.
        """
        ...

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the magnitudes of attraction and repulsion between two points at distance r."""
        ...

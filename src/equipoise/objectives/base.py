"""What an objective promises."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from .._types import Array, Matrix
from ..engines import Engine
from ..kernels import Kernel


class Balance(NamedTuple):
    """The two forces on each point, and the loss; attraction + repulsion = −gradient."""

    attraction: Array  # (n, d)
    repulsion: Array  # (n, d)
    loss: float  # NaN when it was not asked for


class Objective(Protocol):
    """A loss over embeddings Y (n, d), evaluated through any engine's edges and field."""

    affinities: Matrix
    kernel: Kernel
    mass: float  # Σ P: 1 for joint affinities, n for conditional ones; the gradient grows with it

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        """Return both forces on every point, and the loss if asked for.

        Exaggeration multiplies P in the attraction alone; the loss is always the stated one.
        """
        ...

    def stiffness(self, exaggeration: float) -> float:
        """Return the attraction at this exaggeration relative to KL's at 1: the learning rate falls with it."""
        ...

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the magnitudes of attraction and repulsion between two points at distance r."""
        ...

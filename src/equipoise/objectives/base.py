"""Defines what an objective, that is, a loss with its forces, must provide, and how it returns the forces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .._types import Array, Matrix
from ..engines import Engine, Placement
from ..kernels import Gaussian, Kernel

# For the exponent b = −1 the edges of this kernel are −Σ_j A_ij (y_i − y_j): weights A of any form give any force.
SPRINGS = Gaussian()
DIVERGED = "the kernel underflows for every pair (Z = 0): the embedding has diverged; lower learning_rate"


def require_positive(Z: Any, read: bool) -> Any:
    """Return the sum Z of a kernel over all pairs; raise FloatingPointError unless it is positive.

    A tensor is checked only if `read` is true, because reading it would wait for its device.
    """
    if (read or isinstance(Z, float)) and not Z > 0:
        raise FloatingPointError(DIVERGED)
    return Z


# The force (m, d) of a fitted map on new points, from their positions (m, d), their affinities p_{j|i} to v points of
# the map, CSR (m, v), and the positions (v, d) of these.
FrozenForce = Callable[[Array, Matrix, Array], Array]


class Balance(NamedTuple):
    """The two forces on each point, and the loss; attraction + repulsion = −gradient."""

    attraction: Array  # (n, d)
    repulsion: Array  # (n, d)
    loss: float  # can be NaN if it was not requested
    stiffness: float  # a scale of the loss's curvature, 1 for KL on joint affinities; divides automatic learning rates


class Objective(Protocol):
    """A loss of maps Y (n, d). Most losses are computed from the edges and the field of an engine."""

    @property
    def affinities(self) -> Matrix: ...
    @property
    def kernel(self) -> Kernel: ...
    @property
    def mass(self) -> float:
        """The scale of the gradient, for stopping rules; usually Σ P: 1 for joint, n for conditional affinities."""
        ...

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        """Return the attraction and the repulsion on every point, and the loss if `loss` is true.

        `exaggeration` multiplies the affinities in the forces, which for most losses changes the attraction only. The
        loss is computed without exaggeration.
        """
        ...

    def permuted(self, order: Array) -> Objective:
        """Return the same objective for the points in another order."""
        ...

    def to(self, placement: Placement) -> Objective:
        """Return the objective with its arrays on the device of a placement."""
        ...

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that gives the force (m, d) of the fitted map Y on new points.

        Its arguments are the positions (m, d) of new points, their affinities p_{j|i} to points of the map, CSR (m, v),
        and the positions (v, d) of these points. `exaggeration` is that of the late phase of the fit; it multiplies the
        affinities in the attraction only.
        """
        ...

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the magnitudes of attraction and repulsion at distances r, for affinity p and normaliser Z."""
        ...

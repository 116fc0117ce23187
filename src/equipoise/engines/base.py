"""Defines what engines provide: edges and field, arrays on a device, replayed steps, and state for checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from .._types import Array, Matrix
from ..geometry import Pairs
from ..kernels import Kernel


class Field(NamedTuple):
    """Potential Φ_i = Σ_{j≠i} c_j k(d2_ij) of charges c_j, and its gradient ∇Φ_i = 2 Σ_j c_j k'(d2_ij)(y_i − y_j).

    d2_ij is the squared distance ‖y_i − y_j‖². At new points, the sums run over all points j of the embedding.
    """

    potential: Array  # (n,), or (n, m) for m charge vectors
    gradient: Array  # (n, d), or (n, m, d)


class EntrySum(Protocol):
    """A sum over the stored entries of a matrix, to which parts are added one after the other."""

    def add(self, part: slice, x: Any) -> None:
        """Add the values x of a slice of the stored entries; parts are in order."""
        ...

    def total(self) -> Any:
        """Return the sum over the entries of all processes."""
        ...


class PointSums(Protocol):
    """Reductions over all points of a map, given the rows that this process holds."""

    def count(self, U: Any) -> int:
        """Return the number of points of the map U."""
        ...

    def total(self, x: Any) -> Any:
        """Return the sum of all entries of x (n, ...)."""
        ...

    def entry_total(self, A: Matrix, f: Callable[[Any], Any]) -> float:
        """Return Σ f(a) over the positive entries a of the rows of a matrix."""
        ...

    def entry_sum(self, A: Matrix, start: float = 0.0) -> EntrySum:
        """Return an empty sum over the stored entries of the rows of a matrix; the number `start` is added to it."""
        ...

    def maximum(self, value: float) -> float:
        """Return the largest of the values of all processes."""
        ...

    def spread(self, U: Any) -> float:
        """Return the largest of the standard deviations of the columns of U (n, d)."""
        ...

    def squared_norm(self, x: Any) -> float:
        """Return the sum of the squares of all entries of x (n, d)."""
        ...

    def all_finite(self, U: Any) -> bool:
        """Return whether no entry of U (n, d) is NaN or infinite."""
        ...


class Placement(Protocol):
    """Moves arrays to the memory in which an engine computes, and runs operations that depend on its device."""

    device: str  # "cpu" or "cuda"
    sums: PointSums  # sums over all points of a map

    def to_device(self, array: Any, dtype: Any = None) -> Any:
        """Return an array or a sparse matrix on the engine's device.

        Parameters
        ----------
        array : ndarray, tensor, SciPy CSR matrix or CSR matrix on a device
        dtype : NumPy dtype, optional
            Convert to this precision. By default arrays that are already on the device are returned unchanged.
        """
        ...

    def indices_where(self, mask: Any) -> Any:
        """Return the indices at which a mask (n,) is true; the caller loops over them on the host."""
        ...

    def column_points(self, Y: Any) -> Any:
        """Return the points to which the columns of the edges of Y refer: Y, if this process holds all points."""
        ...

    def concurrently(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        """Call two independent functions, at the same time if the device can, and return both results."""
        ...


class LinearForce(NamedTuple):
    """A force from edges E of b = −1 and a field, with which an engine can take steps without calling the objective.

    The field is that of unit charges, F_i = pull · E_i + (push / Z) ∇Φ_i with Z = Σ_i Φ_i. If `charges` (n, 2) are
    given, 1 and s_i, it is that of both, F_i = pull · E_i + push · (s_i ∇Φ_i[1] + ∇Φ_i[s]).
    """

    A: Matrix  # the weights of the edges
    kernel: Kernel  # of the edges
    apart: Kernel  # of the field
    pull: float
    push: float
    stiffness: float  # a scale of the curvature of the loss
    charges: Array | None = None


@runtime_checkable
class HasLinearForce(Protocol):
    """An objective whose force is a `LinearForce`, at least for some of its parameters."""

    def linear_force(self, exaggeration: float) -> LinearForce | None:
        """Return the force for an exaggeration; None if it has another form."""
        ...


class StepPlan(NamedTuple):
    """Steps of an optimiser by momentum with gains in flat space; the rule `Momentum` documents the numbers."""

    force: LinearForce
    rate: float
    gain_up: float
    gain_down: float
    turned: float
    min_gain: float
    max_step: float
    momentum: Array  # (count,): one value per step


@runtime_checkable
class PlannedStep(Protocol):
    """A step of an optimiser that an engine may take by itself, if it has a plan."""

    def __call__(self, state: Any) -> None:
        """Take one step and update the state."""
        ...

    def plan(self, state: Any, count: int) -> StepPlan | None:
        """Return the plan of the next `count` steps; None if only a call can take them."""
        ...


class Stepper(Protocol):
    """Takes several steps of an optimiser in one call, which saves the time that Python takes for each step.

    A GPU records one step and replays it. On the CPU, the core takes steps that have a plan.
    """

    def replay_steps(self, step: Callable[[Any], None], key: object, state: Any, count: int, min_extent: float) -> int:
        """Replay up to `count` steps and return the number of steps taken; 0 if the engine cannot replay steps.

        Parameters
        ----------
        step : callable
            Takes one step and updates the state passed to it. It may be a `PlannedStep`.
        key : object
            Identifies the step: a new key starts a new recording.
        state : State
            The state of the optimiser, updated in place.
        count : int
            The maximum number of steps.
        min_extent : float
            Stop when the widest side of the embedding becomes shorter than this.
        """
        ...

    def free_buffers(self) -> None:
        """Free the buffers of recorded steps after a run."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """An engine with parameters or a state that a checkpoint stores."""

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that affect results; a checkpoint with other settings is rejected."""
        ...

    def state(self) -> list[dict[str, Any]]:
        """Return the state on which later results depend, as dictionaries of plain values."""
        ...

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Restore the state returned by `state()`, replacing the current one."""
        ...


class Traits(NamedTuple):
    """Fixed properties of an engine: its name, its precision, and how P and the points should be stored for it."""

    name: str  # in `engine="..."`
    dtype: type[np.floating]  # the precision in which embeddings are optimised
    needs_sparse_P: bool  # whether P is stored for the nearest neighbours only
    gains_from_locality: bool  # whether the engine is faster if neighbours in the embedding are close in memory


class Engine(Protocol):
    """Computes two sums over pairs, edges and field (docs/math.md, section 0), for an embedding and for new points.

    Embeddings Y (n, d) are float32 or float64; the precision of the arithmetic depends on the engine. In a curved
    space, y_i − y_j stands for the direction v_ij = ½ ∂d2_ij/∂y_i.

    Attributes
    ----------
    pairs : Pairs or None
        How points are compared; None for Euclidean distances.
    traits : Traits
    placement : Placement
    stepper : Stepper
    """

    pairs: Pairs | None
    traits: Traits

    @property
    def placement(self) -> Placement: ...

    @property
    def stepper(self) -> Stepper: ...

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        """Return Ψ = Σ_ij A_ij ψ_b(d2_ij) and E_i = Σ_j A_ij k^b k' (y_i − y_j), (n, d).

        ψ_b is an antiderivative: ψ_b' = k^b k'. With e = b + 1, it is log k for e = 0, (k^e − 1)/e for |e| < 1/16, and
        k^e / e otherwise. The weights A are CSR, or dense (n, n) with the diagonal ignored. Ψ is NaN if `potential` is
        false.
        """
        ...

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        """Return the field of charges (n,) or (n, m) at the points Y; every charge is 1 by default."""
        ...

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        """Return a function that gives the field of Y at targets (t, d).

        A point of Y that coincides with a target contributes too.
        """
        ...

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        """Return E_i = Σ_j A_ij k^b k' (t_i − y_j), (m, d), for targets t_i (m, d) and points Y (n, d).

        The weights A are CSR (m, n).
        """
        ...


@runtime_checkable
class SamplesPairs(Protocol):
    """An engine that estimates the field from a sample of the pairs."""

    def sum_exactly(self, P: Matrix, d: int) -> None:
        """From now on, include the pairs stored in P in every sample, for embeddings in d dimensions."""
        ...


def require_no_state(engine: Engine, state: list[dict[str, Any]]) -> None:
    """Raise ValueError if `state`, read from a checkpoint, is not empty; for engines that have no state."""
    if state:
        raise ValueError(
            f'the saved state of the engine must be empty for engine="{engine.traits.name}", which has no state'
        )

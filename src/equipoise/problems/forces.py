"""Base class of unsolved problems, and the problem of attraction and repulsion that most methods build."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array, Callback, Matrix
from ..arrays.csr import on_host
from ..arrays.namespace import is_tensor, to_numpy
from ..data.checks.maps import check_map
from ..engines import HOST, Engine, engine_settings, engine_state, restore_engine
from ..geometry import Geometry
from ..linalg.pca import on_one_blas_thread
from ..objectives import Balance, Objective
from ..optimize.descent import Descent, State, Steps, split_callbacks
from ..optimize.gradient_steps import EngineForces, GradientSteps
from ..optimize.rules import Rule, Schedule, check_n_iter, remaining_gain
from ..saving.checkpoint import Checkpoint, RunCheckpoints, fingerprint, locked


class Problem(ABC):
    """A loss over maps Y (n, d), with its forces, initial map and optimiser; `method.problem(X)` builds it.

    Attributes
    ----------
    Y0 : ndarray of shape (n, d)
        The initial map.
    Y : ndarray or Tensor of shape (n, d)
        The map at which the last `optimize` stopped, also after Ctrl-C; the initial map before the first run. With
        several starts, the best map.
    loss_curve : ndarray of shape (m, 2)
        Iteration and loss at each of m evaluations.
    n_iter : int
        Number of iterations of the last `optimize`. With several starts, only the run that led to the best map counts.
    stopped : str
        Why the last `optimize` ended: "n_iter", "min_grad_norm", "min_loss_change", "remaining_gain" or "callback".
    remaining_gain : float
        Estimate of how much further iterations would lower the loss at most, as a fraction of the loss (docs/math.md,
        eq. (R1)); infinite after too few iterations to tell, and NaN after none.
    """

    Y0: Any
    convert_tensor: Callable[[Any], Any] | None = None  # applied to a map that is returned as a tensor
    _default_n_iter: int
    _late_from = 0  # of the steps of the last descent
    _runs: list[Any]  # the state of each start so far

    # Defined by subclasses.

    @abstractmethod
    def _loss_at(self, Y: Array) -> float: ...

    @abstractmethod
    def _gradient_at(self, Y: Array) -> Array: ...

    @abstractmethod
    def _attraction_at(self, Y: Array) -> Array: ...

    @abstractmethod
    def _repulsion_at(self, Y: Array) -> Array: ...

    @abstractmethod
    def _starts(self) -> Sequence[Any]:
        """Return the initial maps."""

    @abstractmethod
    def _start(self, Y: Any) -> Any:
        """Return the state of a descent that starts at Y."""

    @abstractmethod
    def _steps(self, state: Any, n_iter: int) -> Steps[Any]:
        """Return the object that takes the steps of a descent of `n_iter` iterations."""

    @abstractmethod
    def _map(self, state: Any) -> Any:
        """Return the map (n, d) of a state."""

    @abstractmethod
    def _describe_run(self, starts: Sequence[Any], n_iter: int) -> dict[str, Any]:
        """Return the values that determine a run, or fingerprints (hashes) of them; error messages quote the keys."""

    @abstractmethod
    def _saved_state(self) -> Any:
        """Return the state needed to resume, in values that saving/archive.py can write."""

    @abstractmethod
    def _restore_state(self, saved: Any, starts: Sequence[Any]) -> list[Any]:
        """Return the states of the runs, restored from a value that `_saved_state` returned."""

    def _run(self, state: Any, n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None) -> None:
        """Run the optimiser from `state` up to iteration `n_iter`, unless it stops earlier."""
        self._descent(state, n_iter, callbacks, saver).run()

    # Shared by all problems.

    @property
    def _best(self) -> Any:
        return min(self._runs, key=lambda state: state.loss)

    @property
    def Y(self) -> Any:
        Y = self._map(self._best)
        return Y if self.convert_tensor is None or not is_tensor(Y) else self.convert_tensor(Y)

    @property
    def loss_curve(self) -> Array:
        return np.array(self._best.curve, dtype=np.float64).reshape(-1, 2)

    @property
    def n_iter(self) -> int:
        return self._best.iteration

    @property
    def stopped(self) -> str:
        return self._best.stopped

    @property
    def remaining_gain(self) -> float:
        return remaining_gain(self._best.curve, self._late_from)

    @on_one_blas_thread
    def loss(self, Y: Array) -> float:
        """Return the loss at Y (n, d), without exaggeration."""
        return self._loss_at(self._check(Y))

    @on_one_blas_thread
    def gradient(self, Y: Array) -> Array:
        """Return the gradient of the loss at Y, (n, d), in the precision of Y: float32 or float64."""
        return self._gradient_at(self._check(Y))

    @on_one_blas_thread
    def attraction(self, Y: Array) -> Array:
        """Return the attractive force on each point at Y, (n, d)."""
        return self._attraction_at(self._check(Y))

    @on_one_blas_thread
    def repulsion(self, Y: Array) -> Array:
        """Return the repulsive force on each point at Y, (n, d); attraction plus repulsion is minus the gradient."""
        return self._repulsion_at(self._check(Y))

    @on_one_blas_thread
    def optimize(
        self, n_iter: int | None = None, Y0: Array | None = None, callbacks: Sequence[Callback | Checkpoint] = ()
    ) -> Any:
        """Run the optimiser and return the map.

        After an exception, including Ctrl-C, `Y`, `loss_curve` and `n_iter` have the values of the last complete
        iteration.

        Parameters
        ----------
        n_iter : int, optional
            Maximum number of iterations; by default the `n_iter` with which the problem was built.
        Y0 : ndarray of shape (n, d), optional
            The initial map; by default, each initial map of the problem is used in turn. Early exaggeration runs in
            either case: to continue from a finished map, build the problem with early_exaggeration equal to
            exaggeration.
        callbacks : sequence of callable or Checkpoint, default=()
            Functions are called with (iteration, loss, Y) every `optimizer.every` iterations (MDS: every iteration) and
            stop the run by returning True. A `Checkpoint` saves the state of the run to a file.

        Returns
        -------
        Y : ndarray or Tensor of shape (n, d)
        """
        n_iter = self._default_n_iter if n_iter is None else check_n_iter(n_iter)
        starts = self._starts() if Y0 is None else [self._check(Y0)]
        functions, checkpoints = split_callbacks(callbacks)
        self._runs = [self._start(starts[0])]
        if not checkpoints:
            return self._run_all(starts, n_iter, functions, None)
        with locked(checkpoints):
            saver = RunCheckpoints(checkpoints, self._describe_run(starts, n_iter), self._saved_state)
            saver.resume(lambda saved: self._resume(saved, starts))
            return self._run_all(starts, n_iter, functions, saver)

    def _resume(self, saved: Any, starts: Sequence[Any]) -> None:
        self._runs = self._restore_state(saved, starts)

    def _run_all(
        self, starts: Sequence[Any], n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None
    ) -> Any:
        """Run the optimiser from each of `starts` in turn, without repeating finished runs, and return the best map.

        If a callback stops one of the runs, the remaining starts are skipped.
        """
        for number, start in enumerate(starts):
            if number < len(self._runs) - 1:  # finished before an interruption
                continue
            if number == len(self._runs):
                self._runs.append(self._start(start))
            state = self._runs[-1]
            self._run(state, n_iter, callbacks, saver)
            if state.stopped == "callback":
                break
        return self.Y

    @on_one_blas_thread
    def descent(
        self, n_iter: int | None = None, Y0: Array | None = None, callbacks: Sequence[Callback] = ()
    ) -> Descent[Any]:
        """Return an optimisation that has not begun; advance it with its methods `step` and `run`.

        The attributes `Y`, `loss_curve` and `n_iter` of the problem change with every step. The parameters are those of
        `optimize`, but callbacks must be functions, and without `Y0` only the first of the initial maps is used.
        """
        n_iter = self._default_n_iter if n_iter is None else check_n_iter(n_iter)
        state = self._start(self._starts()[0] if Y0 is None else self._check(Y0))
        self._runs = [state]
        return self._descent(state, n_iter, callbacks)

    def _descent(
        self, state: Any, n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None = None
    ) -> Descent[Any]:
        steps = self._steps(state, n_iter)
        self._late_from = steps.late_from
        return Descent(steps, state, n_iter, callbacks, saver)

    def _check(self, Y: Array) -> Array:
        return check_map(Y, "Y", self.Y0.shape, keep_float32=True)


class ForceProblem(Problem):
    """A problem in which points with a positive affinity attract each other and all points repel each other.

    Parameters
    ----------
    objective, geometry, engine : Objective, Geometry, Engine
        The loss, the geometry of the space that contains the map, and the engine that computes the forces.
    Y0 : ndarray of shape (n, d)
        The initial map.
    schedule : Schedule
        The number of iterations, the exaggeration and the learning rate.
    rule : Rule
        The optimiser, which turns gradients into steps, such as `Momentum()`.
    knn_recall : float, default=1.0
        Fraction of the true neighbours that the neighbour search found; kept as an attribute.

    Attributes
    ----------
    affinities : ndarray or csr_matrix of shape (n, n)
        The affinities P.
    knn_recall : float
        Measured recall of the neighbour search with which P was computed.
    energy_curve : ndarray of shape (m, 4)
        Iteration, kinetic, potential and total energy at each of m evaluations of the loss; m = 0 unless the optimiser
        is `Dynamics`.
    early_undone : bool
        Whether early exaggeration only contracted the map. If so, the next phase started from the initial map again.
    output_device : torch.device or None
        Device on which `Y` is returned as a tensor; None for NumPy arrays.
    """

    def __init__(
        self,
        objective: Objective,
        geometry: Geometry,
        engine: Engine,
        Y0: Array,
        schedule: Schedule,
        rule: Rule,
        knn_recall: float = 1.0,
    ):
        self.objective, self.geometry, self.engine = objective, geometry, engine
        self.schedule, self.rule, self.knn_recall = schedule, rule, knn_recall
        self.output_device: Any = None
        self._Y0 = Y0 if geometry.pairs is not None else engine.placement.to_device(Y0, engine.traits.dtype)
        self._runs = [self._start(self._Y0)]

    @property
    def affinities(self) -> Matrix:
        return on_host(self.objective.affinities)

    @property
    def Y0(self) -> Array:
        return to_numpy(self._Y0)

    @property
    def engine_name(self) -> str:
        """The name of the engine, as in the parameter `engine` of a method."""
        return self.engine.traits.name

    @property
    def energy_curve(self) -> Array:
        curve = np.array(self._state.energy, dtype=np.float64).reshape(-1, 3)
        return np.column_stack([curve, curve[:, 1] + curve[:, 2]])

    @property
    def early_undone(self) -> bool:
        return self._state.early_undone

    @property
    def _state(self) -> State:
        return self._runs[-1]

    @property
    def _default_n_iter(self) -> int:  # type: ignore[override]
        return self.schedule.n_iter

    def _starts(self) -> Sequence[Any]:
        return [self._Y0]

    def _start(self, Y: Any) -> State:
        to_device, dtype = self.engine.placement.to_device, self.engine.traits.dtype
        U = self.geometry.work(Y if self.geometry.pairs is not None else to_device(Y, dtype))  # in float64, see Torus
        return State.start(self.geometry.retract(to_device(U, dtype)))

    def _map(self, state: State) -> Any:
        Y: Any = self.geometry.map(state.in_order())
        return to_numpy(Y) if self.output_device is None else Y.to(self.output_device)

    def _loss_at(self, Y: Array) -> float:
        return self._balance(Y, loss=True).loss

    def _gradient_at(self, Y: Array) -> Array:
        balance = self._balance(Y, loss=False)
        return -(balance.attraction + balance.repulsion)

    def _attraction_at(self, Y: Array) -> Array:
        return self._balance(Y, loss=False).attraction

    def _repulsion_at(self, Y: Array) -> Array:
        return self._balance(Y, loss=False).repulsion

    @on_one_blas_thread
    def pair_scalars(self, Y: Array, i: Any = None, j: Any = None) -> tuple[Array, Array]:
        """Return the scalars A_ij and R_ij with which point j attracts and repels point i at Y.

        The gradient is ∇_i = Σ_j (A_ij − R_ij)(y_i − y_j). In the notation of Draganov & Dohn 2024, eq. (1), these are
        −c δ_ij A_ij and −c δ_ij R_ij. With a metric tensor g, y_i − y_j is to be multiplied by g; on a sphere, the
        gradient is the tangential part of the sum over unit vectors.

        Parameters
        ----------
        Y : ndarray of shape (n, d)
            A map.
        i, j : int or array-like of int, optional
            Indices of points, which are broadcast against each other; by default all pairs, as arrays (n, n).

        Returns
        -------
        A, R : ndarray
            With the broadcast shape of i and j.
        """
        from .pair_scalars import pair_scalars  # not needed for a fit

        Y = np.asarray(self._check(Y), dtype=np.float64)
        return pair_scalars(self._host_objective, self.geometry.work(Y), self.engine, i, j)

    def _balance(self, Y: Array, *, loss: bool) -> Balance:
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite loss is a valid result
            result = self._host_objective.balance(self.geometry.work(Y), self.engine, loss=loss)
        attraction, repulsion = (self.geometry.pull_back(Y, F).astype(Y.dtype) for F in result[:2])
        return result._replace(attraction=attraction, repulsion=repulsion)

    @cached_property
    def _host_objective(self) -> Objective:
        """The objective for maps that are NumPy arrays."""
        return self.objective.to(HOST)

    def _steps(self, state: State, n_iter: int) -> GradientSteps:
        return GradientSteps(self._forces(state), self.geometry, self.rule, self.schedule.phases(n_iter))

    def _forces(self, state: State) -> EngineForces:
        return EngineForces(self.objective, self.engine, state.order)

    def _run(self, state: State, n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None) -> None:
        try:
            with np.errstate(all="ignore"):  # a diverging run is reported once, from its loss
                super()._run(state, n_iter, callbacks, saver)
        finally:
            self.engine.stepper.free_buffers()

    def _describe_run(self, starts: Sequence[Any], n_iter: int) -> dict[str, Any]:
        return {
            "affinities": fingerprint(self.affinities),
            "loss": fingerprint(self.objective),
            "initial map": fingerprint(to_numpy(self._start(starts[0]).origin), self.geometry),
            "n_iter": n_iter,
            "learning rate or exaggeration": fingerprint(self.schedule),
            "optimizer": fingerprint(self.rule),
            "engine": [self.engine.traits.name, engine_settings(self.engine)],
        }

    def _saved_state(self) -> dict[str, Any]:
        return {"state": self._state.plain(), "engine": engine_state(self.engine)}

    def _restore_state(self, saved: Any, starts: Sequence[Any]) -> list[State]:
        state = self._start(starts[0])
        state.restore(saved["state"])
        if state.phase not in range(-1, count := len(self.schedule.phases(self.schedule.n_iter))):
            raise ValueError(f"the saved phase has index {state.phase}, but the schedule has {plural(count, 'phase')}")
        restore_engine(self.engine, saved["engine"])
        return [state]

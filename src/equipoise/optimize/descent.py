"""The loop shared by all optimisers: `Descent` handles the state, reports, stopping and checkpoints.

Optimisers differ in their `Steps` object: gradient steps (gradient_steps.py), majorisation (majorize.py),
negative sampling (negative_sampling.py), placement of new points (placement.py) and the epochs of a network
(methods/parametric/training.py).
"""

from __future__ import annotations

import atexit
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from .._types import Array, Callback
from ..arrays.namespace import array_like, array_namespace, on_device_of, to_numpy, unpermute
from ..linalg.pca import on_one_blas_thread
from ..progress import start_optimizer_stage
from ..saving.checkpoint import Checkpoint, RunCheckpoints


class RunState(Protocol):
    """The attributes that `Descent` reads and writes in the state of a run."""

    iteration: int
    loss: float
    curve: list[tuple[int, float]]
    stopped: str


@dataclass
class State:
    """State of a gradient descent, complete after every iteration, so that an interrupted run can continue from it."""

    U: Array  # (n, d), working coordinates of the geometry
    velocity: Array
    gain: Array
    origin: Array  # U at iteration 0
    phase: int = -1  # index of the last phase that has begun
    iteration: int = 0
    loss: float = np.nan
    settling: float = np.nan  # loss at the previous report of the late phase
    age: int = 0  # steps since the momentum was last reset
    order: Array | None = None  # U[t] is point order[t]; None: input order
    curve: list[tuple[int, float]] = field(default_factory=list)
    stopped: str = "n_iter"  # reason: n_iter, min_grad_norm, min_loss_change, remaining_gain or callback
    early_undone: bool = False  # early exaggeration only contracted the map, so the late phase began at `origin`
    due: Array | None = None  # negative sampling: the iteration at which each edge attracts next
    energy: list[tuple[int, float, float]] = field(default_factory=list)  # iteration, kinetic and potential energy

    @classmethod
    def start(cls, U: Array) -> State:
        """Return the state at iteration 0, with coordinates U and no momentum."""
        xp = array_namespace(U)
        return cls(U, xp.zeros_like(U), xp.ones_like(U), U)

    def in_order(self) -> Array:
        """Return U in the order of the input."""
        return unpermute(self.U, self.order)

    def rewind(self, U: Array, iteration: int, phase: int) -> None:
        """Go back to the map U (in input order) of an earlier iteration and phase, and drop later losses."""
        if phase < self.phase:
            self.order = None  # points are sorted when a phase begins
        self.U = U if self.order is None else U[self.order]
        self.iteration, self.phase = iteration, phase
        self.curve = [point for point in self.curve if point[0] <= iteration]
        self.energy = [point for point in self.energy if point[0] <= iteration]

    def reset_momentum(self) -> None:
        """Reset velocity and gains, which are no longer valid after the forces change."""
        xp = array_namespace(self.U)
        self.velocity, self.gain, self.age = xp.zeros_like(self.U), xp.ones_like(self.U), 0

    def plain(self) -> dict[str, Any]:
        """Return the state as plain values and NumPy arrays, without `origin`."""
        curve = np.array(self.curve, dtype=np.float64).reshape(-1, 2)
        arrays: dict[str, Any] = {name: to_numpy(getattr(self, name)) for name in ("U", "velocity", "gain")}
        arrays["order"] = None if self.order is None else to_numpy(self.order)
        left_out = {"origin"} if self.energy else {"origin", "energy"}  # earlier versions know no energy
        others = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**others, **arrays, "curve": curve}

    def restore(self, plain: dict[str, Any]) -> None:
        """Restore the values returned by `plain`; `origin` is unchanged."""
        plain = {"energy": [], **plain}
        check_names(plain, vars(self).keys() - {"origin"})
        check_numbers(plain, integers=("iteration", "phase", "age"), floats=("loss", "settling"))
        energy = [(int(iteration), float(kinetic), float(loss)) for iteration, kinetic, loss in plain["energy"]]
        arrays: dict[str, Any] = {}
        for name in ("U", "velocity", "gain"):
            value = check_array(plain[name], name, self.origin.shape)
            arrays[name] = array_like(self.origin, value)
        if arrays["velocity"].dtype != arrays["gain"].dtype:
            raise ValueError(
                f"the saved velocity has dtype {arrays['velocity'].dtype}, but the saved gain has dtype"
                f" {arrays['gain'].dtype}"
            )
        order = plain["order"]
        if order is not None:
            n = len(self.origin)
            if not np.array_equal(np.sort(order), np.arange(n)):
                raise ValueError(f"the saved order of the points is not a permutation of 0 to {n - 1}")
            order = on_device_of(self.origin, np.ascontiguousarray(order))
        vars(self).update({**plain, **arrays, "order": order, "curve": check_curve(plain["curve"]), "energy": energy})


def check_names(plain: dict[str, Any], expected: Set[str]) -> None:
    """Raise unless the values of a saved state have the names `expected`."""
    if different := plain.keys() ^ expected:
        raise ValueError(
            f"the saved state has missing or unknown values: {', '.join(sorted(map(str, different)))[:80]}"
        )


def check_numbers(plain: dict[str, Any], integers: Sequence[str], floats: Sequence[str]) -> None:
    """Raise unless the values named in `integers` are integers, those in `floats` are numbers and `stopped` is text."""
    for names, kinds in ((integers, int | np.integer), (floats, int | float | np.number), (("stopped",), str)):
        for name in names:
            if isinstance(plain[name], bool) or not isinstance(plain[name], kinds):
                raise ValueError(f"the saved value of {name} has the wrong type, {type(plain[name]).__name__}")


def check_array(value: Any, name: str, shape: tuple[int, ...]) -> Array:
    """Return an array of a saved state in C order and native byte order; raise unless it is float and has `shape`."""
    if value.shape != shape or value.dtype.kind != "f":
        raise ValueError(
            f"the saved array {name} has shape {value.shape} and dtype {value.dtype}; expected shape {shape} and a"
            " floating-point dtype"
        )
    return np.array(value, dtype=value.dtype.newbyteorder("="), order="C")


def check_curve(curve: Any) -> list[tuple[int, float]]:
    """Return the loss curve of a saved state, an array (reports, 2), as a list."""
    return [(int(iteration), float(loss)) for iteration, loss in curve]


S = TypeVar("S", bound=RunState)


class Steps(ABC, Generic[S]):
    """Takes the steps of a descent. Subclasses define `move` and `current_map`, and can override the other methods."""

    reports_without_callbacks = True  # False if the loss is expensive and only callbacks need it

    def start_progress(self, n_iter: int, done: int) -> list[Callback]:
        """Begin the progress display and return the callbacks that update it."""
        return list(start_optimizer_stage(n_iter, done))

    def prepare(self, state: S) -> None:
        """Prepare the next iteration, for example enter the next phase."""

    def is_report_due(self, state: S, n_iter: int) -> bool:
        """Return whether to report the loss at the current iteration, before the step."""
        return True

    def evaluate(self, state: S, loss: bool) -> float:
        """Compute what the next step needs, for example the gradient, and return the loss.

        If `loss` is False, the result can be NaN. The next step reuses the computed values.
        """
        return np.nan

    def check_loss(self, state: S, loss: float) -> None:
        """Raise FloatingPointError if the loss is not finite."""
        if not np.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss} at iteration {state.iteration}; use another initial map")

    def check_result(self, state: S) -> None:
        """Raise FloatingPointError if the final map is not finite; the default accepts every map."""

    def on_report(self, state: S) -> None:
        """Display the reported loss or the progress; called at every report, before the callbacks."""

    def stop_reason(self, state: S) -> str | None:
        """Return the name of the stopping rule that applies after a report, or None."""
        return None

    @abstractmethod
    def move(self, state: S) -> bool:
        """Take one step; return False, with state.stopped set, if no step lowers the loss."""

    def skip_ahead(self, state: S, last: int) -> None:
        """Take several steps in one call, up to iteration `last` or the next report at most; the default takes none."""

    def final_loss(self, state: S) -> float | None:
        """Return the loss to report after the last iteration; None if the regular reports include it."""
        return None

    @abstractmethod
    def current_map(self, state: S) -> Array:
        """Return the map (n, d) for callbacks, a read-only NumPy array in input order."""

    def forget(self) -> None:
        """Discard cached evaluations, because the state was changed from outside."""


def split_callbacks(callbacks: Sequence[Callback | Checkpoint]) -> tuple[list[Callback], list[Checkpoint]]:
    """Return the functions and the checkpoints among callbacks."""
    functions = [c for c in callbacks if not isinstance(c, Checkpoint)]
    return functions, [c for c in callbacks if isinstance(c, Checkpoint)]


class _Computation:
    """A context around every computation, so that the program waits at exit for computations in daemon threads.

    Without the wait, the process can abort. CPython before 3.14 unwinds the stack of a daemon thread that takes the GIL
    while the interpreter ends, and compiled code that must not throw, such as SciPy's FFT and PyTorch, then aborts.
    """

    LONGEST = 10.0  # seconds that the program waits for computations at exit; chosen
    PAUSE = 1.0  # seconds by which a thread delays its first computation during the exit; chosen

    def __init__(self) -> None:
        self._reset()
        atexit.register(self._complete)
        if hasattr(os, "register_at_fork"):  # other threads do not exist in the child
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._changed, self._running, self._ending = threading.Condition(), 0, False
        self._paused: set[int] = set()

    def __enter__(self) -> None:
        if threading.current_thread().daemon:  # Python waits for other threads
            with self._changed:
                if self._ending and threading.get_ident() not in self._paused:
                    self._paused.add(threading.get_ident())  # once: a function of atexit may wait for this thread
                    self._changed.wait_for(lambda: False, self.PAUSE)
                self._running += 1

    def __exit__(self, *error: object) -> None:
        if threading.current_thread().daemon:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _complete(self) -> None:
        with self._changed:
            self._ending = True
            self._changed.wait_for(lambda: self._running <= 0, self.LONGEST)  # -1 after a fork inside a computation


computation = _Computation()


class Descent(Generic[S]):
    """An optimisation that is advanced with `step` or `run`; both give byte-identical maps.

    An iteration reports the loss to callbacks and stopping rules if a report is due, takes a step, and writes a
    checkpoint if one is due.

    Parameters
    ----------
    steps : Steps
        The steps of the optimiser.
    state : RunState
        Initial state; updated in place after every iteration.
    n_iter : int
        Iteration at which the descent ends.
    callbacks : sequence of callable, default=()
        Called with (iteration, loss, Y); a callback stops the descent by returning True.
    saver : RunCheckpoints, optional
        Writes checkpoints.

    Attributes
    ----------
    finished : bool
        Whether the descent has ended; `state.stopped` is the reason.
    """

    def __init__(
        self,
        steps: Steps[S],
        state: S,
        n_iter: int,
        callbacks: Sequence[Callback] = (),
        saver: RunCheckpoints | None = None,
    ):
        self.steps, self.state, self.n_iter, self.saver = steps, state, n_iter, saver
        self.callbacks = list(callbacks)
        self.finished = False
        self._reported = self._last_report()

    @on_one_blas_thread
    def step(self) -> bool:
        """Run one iteration; return False, without a step, if the descent ends or has already ended."""
        if self.finished:
            return False
        state, steps = self.state, self.steps
        with computation:
            steps.prepare(state)
            due = self._is_report_due()
            loss = steps.evaluate(state, loss=True) if due else np.nan
        new = due and self._reported != state.iteration
        if new and (reason := self._report(loss) or steps.stop_reason(state)):
            return self._end(reason)
        if state.iteration >= self.n_iter:
            with computation:
                final = steps.final_loss(state)
            if final is not None:
                self._report(final)
            return self._end()
        with computation:
            moved = steps.move(state)
        if not moved:
            return self._end()
        self._save()
        return True

    @on_one_blas_thread
    def run(self, until: int | None = None) -> S:
        """Take steps until the descent ends, or up to iteration `until`, and return the state."""
        last = self.n_iter if until is None else min(until, self.n_iter)
        callbacks, done = self.callbacks, self.state.iteration
        self.callbacks = [*callbacks, *self.steps.start_progress(self.n_iter, done)]
        try:
            while (until is None or self.state.iteration < until) and self.step():
                self._skip_ahead(last)
        finally:
            self.callbacks = callbacks
        return self.state

    @on_one_blas_thread
    def evaluate(self, loss: bool | None = None) -> float:
        """Compute what the next step needs at the current state, for example the gradient, and return the loss.

        If `loss` is False, the result can be NaN; by default, `loss` is True if a report is due. If a change of phase
        is due, it happens first. The next step reuses the computed values.
        """
        with computation:
            self.steps.prepare(self.state)
            return self.steps.evaluate(self.state, self._is_report_due() if loss is None else loss)

    def replace_steps(self, steps: Steps[S]) -> None:
        """Continue with other steps: another objective, engine, rule or schedule."""
        self.steps = steps

    def set_state(self, state: S) -> None:
        """Continue from another state, such as an earlier one."""
        self.state, self.finished = state, False
        self._reported = self._last_report()
        self.steps.forget()

    def _last_report(self) -> int | None:
        return self.state.curve[-1][0] if self.state.curve else None

    def _is_report_due(self) -> bool:
        wanted = self.steps.reports_without_callbacks or bool(self.callbacks)
        return wanted and self.steps.is_report_due(self.state, self.n_iter)

    def _report(self, loss: float) -> str | None:
        """Record the loss and call every callback; return "callback" if one of them returns True."""
        state = self.state
        self.steps.check_loss(state, loss)
        state.loss = loss
        state.curve.append((state.iteration, loss))
        self._reported = state.iteration
        self.steps.on_report(state)
        if not self.callbacks:
            return None
        Y = self.steps.current_map(state)
        return "callback" if any([callback(state.iteration, loss, Y) for callback in self.callbacks]) else None

    def _end(self, reason: str | None = None) -> bool:
        self.finished = True
        if reason is not None:
            self.state.stopped = reason
        self.steps.check_result(self.state)
        return False

    def _save(self) -> None:
        if self.saver is not None:
            self.saver.save_if_due(self.state.iteration)

    def _skip_ahead(self, last: int) -> None:
        before = self.state.iteration
        if self.saver is not None:
            last = min(last, self.saver.next_due(before))
        if before < last:
            with computation:
                self.steps.skip_ahead(self.state, last)
        if self.state.iteration > before:
            self._save()

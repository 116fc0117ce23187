"""What every unsolved problem has: loss, gradient and forces at any map, and an optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Array, Callback
from ..data.checks.maps import check_map
from ..optimize.descent import Descent, Steps
from ..saving.checkpoint import Checkpoint, RunCheckpoints


class Problem:
    """A loss over maps Y (n, d), with its forces, initial map and optimiser; `method.problem(X)` builds it.

    Attributes
    ----------
    Y0 : ndarray of shape (n, d)
        The initial map.
    Y : ndarray or Tensor of shape (n, d)
        The map where the last `optimize` stopped, also after Ctrl-C; the initial map before. With several starts, the
        best map.
    loss_curve : ndarray of shape (m, 2)
        Iteration and loss.
    n_iter : int
        Iterations done by the last `optimize`.
    stopped : str
        Why it ended: "n_iter", "min_grad_norm", "min_loss_change" or "callback".
    """

    Y0: Any
    _default_n_iter: int
    _runs: list[Any]  # the state of each start so far

    # What a kind of problem defines.

    def _loss_at(self, Y: Array) -> float:
        raise NotImplementedError

    def _gradient_at(self, Y: Array) -> Array:
        raise NotImplementedError

    def _attraction_at(self, Y: Array) -> Array:
        raise NotImplementedError

    def _repulsion_at(self, Y: Array) -> Array:
        raise NotImplementedError

    def _starts(self) -> Sequence[Any]:
        """Return the initial maps."""
        raise NotImplementedError

    def _start(self, Y: Any) -> Any:
        """Return the state of a descent that starts at Y."""
        raise NotImplementedError

    def _steps(self, state: Any, n_iter: int) -> Steps[Any]:
        """Return how a descent of `n_iter` iterations moves."""
        raise NotImplementedError

    def _map(self, state: Any) -> Any:
        """Return the map (n, d) of a state."""
        raise NotImplementedError

    def _describe_run(self, starts: Sequence[Any], n_iter: int) -> dict[str, Any]:
        """Return what a run depends on, as fingerprints under names for error messages."""
        raise NotImplementedError

    def _saved_state(self) -> Any:
        """Return what resuming needs, in values that saving/archive.py writes."""
        raise NotImplementedError

    def _restore_state(self, saved: Any, starts: Sequence[Any]) -> list[Any]:
        """Return the states of the runs from which `_saved_state` was made."""
        raise NotImplementedError

    def _run(self, state: Any, n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None) -> None:
        """Optimise one start from its state."""
        Descent(self._steps(state, n_iter), state, n_iter, callbacks, saver).run()

    # What all of them share.

    @property
    def _best(self) -> Any:
        return min(self._runs, key=lambda state: state.loss)

    @property
    def Y(self) -> Any:
        return self._map(self._best)

    @property
    def loss_curve(self) -> Array:
        return np.array(self._best.curve, dtype=np.float64).reshape(-1, 2)

    @property
    def n_iter(self) -> int:
        return self._best.iteration

    @property
    def stopped(self) -> str:
        return self._best.stopped

    def loss(self, Y: Array) -> float:
        """Return the loss at Y (n, d), without exaggeration."""
        return self._loss_at(self._check(Y))

    def gradient(self, Y: Array) -> Array:
        """Return the gradient of the loss at Y, (n, d), in the precision of Y: float32 or float64."""
        return self._gradient_at(self._check(Y))

    def attraction(self, Y: Array) -> Array:
        """Return the attractive force on each point at Y, (n, d)."""
        return self._attraction_at(self._check(Y))

    def repulsion(self, Y: Array) -> Array:
        """Return the repulsive force on each point at Y, (n, d). The two forces sum to minus the gradient."""
        return self._repulsion_at(self._check(Y))

    def optimize(
        self, n_iter: int | None = None, Y0: Array | None = None, callbacks: Sequence[Callback | Checkpoint] = ()
    ) -> Any:
        """Run the optimiser and return the map.

        After an exception, Ctrl-C included, `Y`, `loss_curve` and `n_iter` have the values of the last complete
        iteration.

        Parameters
        ----------
        n_iter : int, optional
            Maximum number of iterations; that of the method by default.
        Y0 : ndarray of shape (n, d), optional
            Where to start, by default the initial map of the problem, or each of them. Early exaggeration runs in
            either case: to continue from a finished map, build the problem with early_exaggeration equal to
            exaggeration.
        callbacks : sequence of callable or Checkpoint, default=()
            Functions are called with (iteration, loss, Y) every `every` iterations of the optimiser (MDS: after each)
            and stop the run by returning True. A `Checkpoint` saves the state of the run to a file.

        Returns
        -------
        Y : ndarray or Tensor of shape (n, d)
        """
        n_iter = self._default_n_iter if n_iter is None else check_n_iter(n_iter)
        starts = self._starts() if Y0 is None else [self._check(Y0)]
        functions = [c for c in callbacks if not isinstance(c, Checkpoint)]
        checkpoints = [c for c in callbacks if isinstance(c, Checkpoint)]
        runs = [self._start(starts[0])]
        saver = None
        if checkpoints:
            saver = RunCheckpoints(checkpoints, self._describe_run(starts, n_iter), self._saved_state)
            if (saved := saver.load()) is not None:
                runs = self._restore_state(saved, starts)
        self._runs = runs
        for number, start in enumerate(starts):
            if number < len(self._runs) - 1:  # finished before an interruption
                continue
            if number == len(self._runs):
                self._runs.append(self._start(start))
            state = self._runs[-1]
            self._run(state, n_iter, functions, saver)
            if state.stopped == "callback":
                break
        return self.Y

    def _check(self, Y: Array) -> Array:
        return check_map(Y, "Y", self.Y0.shape, keep_float32=True)


def check_n_iter(n_iter: Any) -> int:
    """Return n_iter as an int; raise if it is not a non-negative integer."""
    if not isinstance(n_iter, int | np.integer):
        raise ValueError(f"n_iter must be an integer, got {n_iter!r}")
    if n_iter < 0:
        raise ValueError(f"n_iter must not be negative, got {n_iter}")
    return int(n_iter)

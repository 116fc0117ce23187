"""The unsolved problem of scaling: dissimilarities, stress and starts built, nothing optimised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Array, Callback
from ..data import check_finite
from ..objectives.stress.metric import Stress
from ..optimize.majorize import Descent, minimize
from ..progress import start_optimizer_stage
from ..saving.checkpoint import Checkpoint, Keeping, digest
from .forces import check_n_iter


class StressProblem:
    """A stress over maps Y (n, d), with its forces and its optimiser.

    Attributes
    ----------
    engine : "stored", "recomputed", "listed" or "sampled": which pairs are compared, and where their δ come from
    starts : the initial maps, each (n, d)
    Y : the best map of the last `optimize`, also after Ctrl-C; the first initial map before
    loss_curve : (m, 2) array of iteration and loss on the way to it
    n_iter : iterations done on the way to it
    stopped : what ended it: "n_iter", "min_loss_change" or "callback"
    """

    def __init__(self, stress: Stress, engine: str, starts: Sequence[Array], solver: str, n_iter: int, tol: float):
        self.stress = stress
        self.engine = engine
        self.solver = solver
        self.tol = tol
        self._n_iter = n_iter
        self.starts = starts
        self.Y0 = starts[0]
        self._runs = [Descent(self.Y0)]

    @property
    def _best(self) -> Descent:
        return min(self._runs, key=lambda run: run.loss)

    @property
    def Y(self) -> Array:
        return self._best.Y.astype(np.float32)

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
        """Return the stress at Y."""
        return self.stress.slope(self._check(Y)).loss

    def gradient(self, Y: Array) -> Array:
        """Return the gradient of the stress at Y, (n, d). Its precision is that of Y: float32 or float64."""
        Y = self._check(Y)
        return (2 * self.stress.slope(Y).half_gradient).astype(Y.dtype)

    def attraction(self, Y: Array) -> Array:
        """Return the attractive force on each point, (n, d): −2 V Y, every pair like a spring of length 0."""
        Y = self._check(Y)
        return self.stress.attraction(Y).astype(Y.dtype)

    def repulsion(self, Y: Array) -> Array:
        """Return the repulsive force on each point, (n, d): 2 B(Y) Y. The two sum to minus the gradient."""
        Y = self._check(Y)
        return (-2 * self.stress.slope(Y).half_gradient - self.stress.attraction(Y)).astype(Y.dtype)

    def optimize(
        self, n_iter: int | None = None, Y0: Array | None = None, callbacks: Sequence[Callback | Checkpoint] = ()
    ) -> Array:
        """Run the optimiser from Y0, or from each of the starts, and return the best map.

        A callback receives (iteration, loss, Y) after every iteration and ends everything by returning True. A
        `Checkpoint` keeps the state of the run on disk. After an exception, Ctrl-C included, `Y`, `loss_curve` and
        `n_iter` hold the best map so far.
        """
        n_iter = self._n_iter if n_iter is None else check_n_iter(n_iter)
        starts = self.starts if Y0 is None else [self._check(Y0)]
        keeping = Keeping(callbacks, lambda: self._run(n_iter, starts), self._plain)
        found = keeping.found()
        self._runs = [] if found is None else [Descent.restored(run, self.Y0.shape) for run in found]
        for number, start in enumerate(starts):
            if number < len(self._runs) - 1:  # done before an interruption
                continue
            if number == len(self._runs):
                self._runs.append(Descent(np.array(start, dtype=np.float64)))
            run = self._runs[-1]
            told = [*keeping.callbacks, *start_optimizer_stage(n_iter, run.iteration)]
            minimize(self.stress.slope, run, self.solver, n_iter, self.tol, told, keeping.keep)
            if run.stopped == "callback":
                break
        return self.Y

    def _run(self, n_iter: int, starts: Sequence[Array]) -> dict[str, Any]:
        """Return what makes a run what it is, under names that a person knows."""
        return {
            "dissimilarities or weights": digest(self.stress),
            "initial map": digest(list(starts)),
            "n_iter": n_iter,
            "solver or tol": digest(self.solver, self.tol),
            "engine": self.engine,
        }

    def _plain(self) -> list[dict[str, Any]]:
        return [run.plain() for run in self._runs]

    def _check(self, Y: Array) -> Array:
        Y = np.asarray(Y)
        if Y.dtype != np.float32:
            Y = Y.astype(np.float64)
        if Y.shape != self.Y0.shape:
            raise ValueError(f"Y has shape {Y.shape}, but this problem is about maps of shape {self.Y0.shape}")
        check_finite(Y, "Y")
        return Y

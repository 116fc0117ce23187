"""Unsolved problems of multidimensional scaling: a stress to minimise, and its initial maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Array
from ..objectives.stress.metric import Stress
from ..objectives.stress.worst_case import WorstCase
from ..optimize.majorize import GradientDescentSteps, MajorizationSteps, StressState
from ..saving.checkpoint import fingerprint
from .forces import Problem


class StressProblem(Problem):
    """A stress over maps Y (n, d), with its initial maps.

    Metric stress is σ(Y) = Σ_{i<j} w_ij (d_ij − δ_ij)², with weights w_ij, dissimilarities δ_ij of the data, and
    distances d_ij = ‖y_i − y_j‖ in the map. Its attraction on point i is −2 Σ_j w_ij (y_i − y_j): every pair attracts
    like a spring of length 0. Its repulsion is 2 Σ_j w_ij (δ_ij/d_ij)(y_i − y_j). For the forces of other stresses see
    docs/math.md, section 14.

    Parameters
    ----------
    stress : Stress
        The loss, which contains the dissimilarities and weights.
    engine : {"stored", "recomputed", "listed", "random_pairs", "torch"}
        Name of the engine, which says which pairs are compared and whether their δ are stored or recomputed.
    starts : sequence of ndarray of shape (n, d)
        The initial maps.
    solver : {"lbfgs", "smacof", "descent"}
        "smacof" takes plain majorising steps; "lbfgs" accelerates them by L-BFGS; "descent" is gradient descent.
    n_iter : int
        Maximum number of iterations of each start.
    tol : float
        Stop when the last ten iterations together have decreased the loss by less than this fraction of the loss.
    learning_rate : float or "auto", default="auto"
        Rate of gradient descent; "auto" is 1/(2n) for metric stress with unit weights.
    """

    def __init__(
        self,
        stress: Stress,
        engine: str,
        starts: Sequence[Array],
        solver: str,
        n_iter: int,
        tol: float,
        learning_rate: float | str = "auto",
    ):
        self.stress, self.engine, self.solver, self.tol = stress, engine, solver, tol
        self.learning_rate = learning_rate
        self.starts = starts
        self.Y0 = starts[0]
        self._default_n_iter = n_iter
        self._runs = [StressState(self.Y0)]

    def _loss_at(self, Y: Array) -> float:
        return self.stress.slope(Y).loss

    def _gradient_at(self, Y: Array) -> Array:
        return (2 * self.stress.slope(Y).half_gradient).astype(Y.dtype)

    def _attraction_at(self, Y: Array) -> Array:
        return self.stress.attraction(Y).astype(Y.dtype)

    def _repulsion_at(self, Y: Array) -> Array:
        return (-2 * self.stress.slope(Y).half_gradient - self.stress.attraction(Y)).astype(Y.dtype)

    def _starts(self) -> Sequence[Array]:
        return self.starts

    def _start(self, Y: Array) -> StressState:
        return StressState(np.array(Y, dtype=np.float64))

    def _steps(self, state: StressState, n_iter: int) -> MajorizationSteps:
        if self.solver == "descent":
            return GradientDescentSteps(self.stress, self.tol, self.learning_rate)
        if isinstance(self.stress, WorstCase):
            from ..optimize.homotopy import HomotopySteps

            return HomotopySteps(self.stress.stages(), self.tol, n_iter)
        return MajorizationSteps(self.stress, self.solver, self.tol)

    def _map(self, state: StressState) -> Array:
        return state.Y.astype(np.float32)

    def _describe_run(self, starts: Sequence[Array], n_iter: int) -> dict[str, Any]:
        descent = self.solver == "descent"
        return {
            "dissimilarities or weights": fingerprint(self.stress),
            "initial map": fingerprint(list(starts)),
            "n_iter": n_iter,
            "solver or tol": fingerprint(self.solver, self.tol, *([self.learning_rate] if descent else [])),
            # Files of version 0.1.0 contain the former name.
            "engine": "sampled" if self.engine == "random_pairs" else self.engine,
        }

    def _saved_state(self) -> list[dict[str, Any]]:
        return [state.plain() for state in self._runs]

    def _restore_state(self, saved: Any, starts: Sequence[Array]) -> list[StressState]:
        if not 1 <= len(saved) <= len(starts):
            raise ValueError(f"the file contains {len(saved)} runs, but the number of initial maps is {len(starts)}")
        return [StressState.restored(state, self.Y0.shape) for state in saved]

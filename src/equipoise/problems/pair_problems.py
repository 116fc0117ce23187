"""Problems of losses F(k_x, k_y): minimised by their gradient, by negative sampling, or with a learned normaliser."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import to_numpy, total
from ..engines import HOST, Sampled
from ..objectives import Objective
from ..objectives.pair_objective import PairObjective
from ..optimize.descent import State
from ..optimize.gradient_steps import GradientSteps
from ..optimize.negative_sampling import EdgeSamplingSteps
from ..optimize.pair_sampling import ContrastiveSteps, LearnedState, PairSamplingSteps
from ..pair_losses import Contrastive
from .forces import ForceProblem
from .negative_sampling_problem import NegativeSamplingProblem

TINIEST = float(np.finfo(np.float32).tiny)  # smallest scale at the start


class PairProblem(ForceProblem):
    """A problem with a PairObjective; no steps are replayed on a GPU, because F can be any Python function."""

    def _steps(self, state: State, n_iter: int) -> GradientSteps:
        return SingleGradientSteps(self._forces(state), self.geometry, self.rule, self.schedule.phases(n_iter))


class SingleGradientSteps(GradientSteps):
    """Gradient steps, each of which is computed by Python."""

    def skip_ahead(self, state: State, last: int) -> None:
        """Do nothing: F can be any Python function, which may read values back from the GPU."""


class PairSamplingProblem(NegativeSamplingProblem):
    """A problem with a PairObjective, minimised by sampling edges and negatives."""

    def _steps(self, state: State, n_iter: int) -> EdgeSamplingSteps:
        phases = self.schedule.phases(n_iter)
        return PairSamplingSteps(self.objective, self.engine, self.geometry, self.rule, phases)


class ContrastiveProblem(PairSamplingProblem):
    """A problem with a Contrastive loss whose scale s = m Z/n² is learned while the map is optimised.

    At first Z is the sum of the kernel over all pairs of the initial map. `objective` has the scale that was learned
    together with the current map.

    Attributes
    ----------
    normalizer : float
        The learned Z, which estimates Σ_ij k.
    """

    @property
    def objective(self) -> Objective:
        return self._unscaled.with_loss(Contrastive(float(np.exp(self._best.log_scale))))

    @objective.setter
    def objective(self, objective: Any) -> None:
        self._unscaled: PairObjective = objective

    @property
    def _host_objective(self) -> Objective:
        return self.objective.to(HOST)

    @property
    def normalizer(self) -> float:
        n, m = self._Y0.shape[0], self._negatives
        return float(np.exp(self._best.log_scale)) * n**2 / m

    @property
    def _negatives(self) -> float:
        return float(self._unscaled.negatives or 1.0)

    def _start(self, Y: Any) -> LearnedState:
        U = super()._start(Y).U
        return _with_scale(U, self._unscaled, self.engine, self._negatives)

    def _steps(self, state: State, n_iter: int) -> EdgeSamplingSteps:
        phases = self.schedule.phases(n_iter)
        return ContrastiveSteps(self._unscaled, self.engine, self.geometry, self.rule, phases)


def _with_scale(U: Array, objective: PairObjective, engine: Sampled, negatives: float) -> LearnedState:
    """Return the initial state of a run, with the scale s = m Z/n² for Z = Σ k of the initial map U."""
    n, state = len(U), LearnedState.start(U)
    assert isinstance(state, LearnedState)
    Z = float(total(engine.field(to_numpy(U), objective.kernel).potential))
    state.log_scale = float(np.log(max(negatives * Z / n**2, TINIEST)))
    return state

"""UMAP's problem, optimised by negative sampling."""

from __future__ import annotations

from ..optimize.descent import State
from ..optimize.negative_sampling import NegativeSamplingSteps
from .forces import ForceProblem


class SampledProblem(ForceProblem):
    """The effective cross-entropy, optimised by sampling edges and negatives instead of by its gradient."""

    @property
    def engine_name(self) -> str:
        return "negative_sampling"

    def _steps(self, state: State, n_iter: int) -> NegativeSamplingSteps:
        phases = self.schedule.phases(n_iter)
        return NegativeSamplingSteps(self.objective, self.engine, self.geometry, self.rule, phases)

"""UMAP's problem, optimised by negative sampling."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engines import Sampled
from ..optimize.descent import State
from ..optimize.negative_sampling import EdgeSamplingSteps, NegativeSamplingSteps
from .forces import ForceProblem


class NegativeSamplingProblem(ForceProblem):
    """UMAP's problem with the effective loss, minimised by sampling edges and negatives (random points that repel).

    The optimiser never computes the full gradient.
    """

    engine: Sampled
    _late_from = sys.maxsize  # nothing can be extrapolated: the loss settles because the steps shrink to zero

    @property
    def engine_name(self) -> str:
        return "negative_sampling"

    def _steps(self, state: State, n_iter: int) -> EdgeSamplingSteps:
        phases = self.schedule.phases(n_iter)
        return NegativeSamplingSteps(self.objective, self.engine, self.geometry, self.rule, phases)

    def _restore_state(self, saved: Any, starts: Sequence[Any]) -> list[State]:
        (state,) = super()._restore_state(saved, starts)
        n_edges = self.objective.affinities.nnz
        if state.due is not None and not (state.due.shape == (n_edges,) and state.due.dtype == np.float32):
            raise ValueError(
                "the saved array `due`, the iteration at which each edge attracts next, must have shape"
                f" ({n_edges},) and dtype float32, got {state.due.shape} and {state.due.dtype}"
            )
        return [state]

"""Minimises a sequence of losses, each from the minimum of the one before (docs/math.md, section 14)."""

from __future__ import annotations

from collections.abc import Sequence

from ..objectives.stress.metric import Stress
from .majorize import MajorizationSteps, StressState


class HomotopySteps(MajorizationSteps):
    """Takes the steps of `MajorizationSteps` for each of several losses in turn.

    A loss is replaced by the next after an equal share of `n_iter` iterations, or earlier if the last ten iterations
    decreased it by less than the fraction `tol`. The last loss also gets the iterations that the others did not need.

    Parameters
    ----------
    stages : sequence of Stress
        The losses, none of which exceeds the one before at any map.
    tol : float
    n_iter : int
    """

    def __init__(self, stages: Sequence[Stress], tol: float, n_iter: int):
        super().__init__(stages[0], "lbfgs", tol)
        self.stages, self.n_iter = stages, n_iter
        self.share = max(1, n_iter // len(stages))
        self._entered = -1  # iteration at which the current loss was entered

    @property
    def _last(self) -> int:
        return len(self.stages) - 1

    def prepare(self, state: StressState) -> None:
        due = self._last if state.iteration >= self.n_iter else state.iteration // self.share
        # Not twice at one iteration: the reports until then are those of an earlier loss.
        converged = state.stage + 1 if self._entered != state.iteration and super().stop_reason(state) else 0
        self._enter(state, min(max(state.stage, due, converged), self._last))

    def _enter(self, state: StressState, stage: int) -> None:
        if stage != state.stage:
            state.stage, self._entered = stage, state.iteration
            state.pairs.clear()
            self.forget()
        self.stress = self.stages[stage]

    def stop_reason(self, state: StressState) -> str | None:
        return super().stop_reason(state) if state.stage == self._last else None

    def move(self, state: StressState) -> bool:
        while not super().move(state):
            if state.stage == self._last:
                return False
            self._enter(state, state.stage + 1)
        state.stopped = "n_iter"
        return True

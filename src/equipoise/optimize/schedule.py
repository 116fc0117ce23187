"""Schedules: how long, how exaggerated and how fast a descent runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """A stretch of iterations at one exaggeration (the factor on P in the attraction) and learning rate."""

    n_iter: int
    exaggeration: float
    rate: float | None  # None: the rule's own, from the stiffness at each map
    late: bool


@dataclass(frozen=True)
class Schedule:
    """How long, how exaggerated and how fast: the settings of a run, with "auto" still to be resolved."""

    n_iter: int
    learning_rate: float | str
    early_exaggeration: float
    exaggeration: float

    EARLY = 100  # iterations of early exaggeration, at most half of all; more gain nothing, benchmarks/schedule.py

    def phases(self, n_iter: int) -> list[Phase]:
        """Return the early and the late phase."""
        early = min(self.EARLY, n_iter // 2)
        rate = None if isinstance(self.learning_rate, str) else self.learning_rate
        return [
            Phase(early, self.early_exaggeration, rate, late=False),
            Phase(n_iter - early, self.exaggeration, rate, late=True),
        ]


@dataclass(frozen=True)
class Steady(Schedule):
    """One phase without exaggeration, at the rule's own rate by default."""

    learning_rate: float | str = "auto"
    early_exaggeration: float = 1.0
    exaggeration: float = 1.0

    def phases(self, n_iter: int) -> list[Phase]:
        return [Phase(n_iter, 1.0, None if isinstance(self.learning_rate, str) else self.learning_rate, late=True)]

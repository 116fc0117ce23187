"""Problems whose forces come from PyTorch's autograd: a metric g(y) on the map, or a loss of one's own."""

from __future__ import annotations

from typing import Any

from ..arrays.namespace import host
from ..engines import Engine, Reference
from ..geometry import Geometry
from ..optimize.rules import Rule
from ..optimize.schedule import Schedule
from .forces import Problem


class Autograd(Reference):
    """No engine is asked: the map stays an array in float64, and the loss takes it to its own device."""

    name = "autograd"


class AutogradProblem(Problem):
    """A problem whose map is an array all the way, and is given as a tensor at the end where that is asked for."""

    @property
    def Y(self) -> Any:
        if self.given_on is None:
            return super().Y
        import torch

        return torch.tensor(host(self._state.U), device=self.given_on)


class CurvedProblem(AutogradProblem):
    """A problem in a map with a metric g(Y), on the device of the engine that was asked for."""

    def __init__(
        self,
        objective: Any,
        geometry: Geometry,
        engine: Engine,
        Y0: Any,
        schedule: Schedule,
        rule: Rule,
        knn_recall: float = 1.0,
    ):
        there = objective.on(engine.placement.device)
        there.check(host(Y0))
        super().__init__(there, geometry, Autograd(), host(Y0), schedule, rule, knn_recall)

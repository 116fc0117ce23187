"""Problems whose forces come from PyTorch's autograd: a metric g(y) on the map, or a user-defined loss."""

from __future__ import annotations

from typing import Any

from ..arrays.namespace import to_numpy
from ..engines import Engine, Reference
from ..geometry import Geometry
from ..optimize.descent import State
from ..optimize.rules import Rule, Schedule
from .forces import ForceProblem


class Autograd(Reference):
    """Takes the place of an engine in problems with autograd; it only makes the map a float64 NumPy array.

    The forces do not come from this engine: the loss copies the map to its own device and computes them there.
    """

    traits = Reference.traits._replace(name="autograd")


class AutogradProblem(ForceProblem):
    """A problem whose map is a float64 array during the descent, and a tensor at the end if `output_device` is set."""

    def _map(self, state: State) -> Any:
        if self.output_device is None:
            return super()._map(state)
        import torch

        return torch.tensor(to_numpy(state.U), device=self.output_device)


class CurvedProblem(AutogradProblem):
    """A problem whose map has a metric g(Y); the loss is evaluated on the device of `engine`."""

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
        on_device = objective.on(engine.placement.device)
        on_device.check(to_numpy(Y0))
        super().__init__(on_device, geometry, Autograd(), to_numpy(Y0), schedule, rule, knn_recall)

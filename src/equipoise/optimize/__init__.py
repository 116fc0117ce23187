"""Optimisation: the descent loop, its steps, optimiser rules and schedules."""

from __future__ import annotations

from .descent import Descent, State, Steps
from .dynamics import Dynamics
from .rules import Accelerated, GradientDescent, Momentum

__all__ = ["Accelerated", "Descent", "Dynamics", "GradientDescent", "Momentum", "State", "Steps"]

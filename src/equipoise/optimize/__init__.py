"""Optimisation: the descent loop, its steps, optimiser rules and schedules."""

from __future__ import annotations

from .descent import Descent, State, Steps
from .rules import Accelerated, GradientDescent, Momentum

__all__ = ["Accelerated", "Descent", "GradientDescent", "Momentum", "State", "Steps"]

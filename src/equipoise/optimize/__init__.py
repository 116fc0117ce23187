"""From forces to moves: optimisers, schedules and the descent loop."""

from __future__ import annotations

from .rules import Accelerated, GradientDescent, Momentum

__all__ = ["Accelerated", "GradientDescent", "Momentum"]

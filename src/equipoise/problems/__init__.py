"""Unsolved problems: a loss, an initial map and an optimiser, ready to run."""

from __future__ import annotations

from .forces import ForceProblem, Problem
from .own_loss import LossProblem
from .stress import StressProblem

__all__ = ["ForceProblem", "LossProblem", "Problem", "StressProblem"]

"""Unsolved problems: a loss, a start and an optimiser, ready to run."""

from __future__ import annotations

from .forces import Problem
from .own_loss import LossProblem
from .stress import StressProblem

__all__ = ["LossProblem", "Problem", "StressProblem"]

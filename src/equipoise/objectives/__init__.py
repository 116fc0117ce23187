"""Objectives: the loss and its forces, written as edges + field + scalars (docs/math.md)."""

from __future__ import annotations

from .base import Balance, Objective
from .conditional import ConditionalKL
from .cross_entropy import CrossEntropy, EffectiveCrossEntropy
from .dense import DenseDivergence, require_dense
from .joint import JointDivergence, joint_objective

__all__ = [
    "Balance",
    "ConditionalKL",
    "CrossEntropy",
    "DenseDivergence",
    "EffectiveCrossEntropy",
    "JointDivergence",
    "Objective",
    "joint_objective",
    "require_dense",
]

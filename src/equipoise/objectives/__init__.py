"""Objectives: losses and their forces, computed from sums over edges and over all pairs (docs/math.md)."""

from __future__ import annotations

from .base import Balance, Objective
from .beta_gamma import BetaDivergence, GammaDivergence
from .closed_form import ClosedForm
from .conditional import ConditionalKL
from .cross_entropy import CrossEntropy, EffectiveCrossEntropy
from .dense import DenseDivergence, require_dense
from .double_kernel import DoubleKernelLLE, DoubleKernelPCA
from .gram_loss import GramLoss
from .joint import JointDivergence, RenyiDivergence, joint_objective
from .quotient import TraceQuotient
from .stored_divergence import StoredDivergence
from .two_way import TwoWayKL
from .user_kernel import check_kernel

__all__ = [
    "Balance",
    "BetaDivergence",
    "ClosedForm",
    "ConditionalKL",
    "CrossEntropy",
    "DenseDivergence",
    "DoubleKernelLLE",
    "DoubleKernelPCA",
    "EffectiveCrossEntropy",
    "GammaDivergence",
    "GramLoss",
    "JointDivergence",
    "Objective",
    "RenyiDivergence",
    "StoredDivergence",
    "TraceQuotient",
    "TwoWayKL",
    "check_kernel",
    "joint_objective",
    "require_dense",
]

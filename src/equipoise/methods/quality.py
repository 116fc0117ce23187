"""How good a fitted map is, in one number that suits its method."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import progress
from .mds import MDS
from .scaling import PCA, ClassicalMDS, Isomap


def describe_quality(method: Any) -> tuple[str, str]:
    """Return the name and value of a measure of a fitted method: for example "loss", or "variance kept" of PCA."""
    if isinstance(method, PCA):
        return "variance kept", f"{method.explained_variance_ratio_.sum():.1%}"
    if isinstance(method, ClassicalMDS | Isomap):  # the loss ‖B − YYᵀ‖² has the minimum ‖B‖² − Σλ²
        kept = float(np.square(np.maximum(method.eigenvalues_, 0.0)).sum())
        return "Gram matrix kept", f"{kept / (kept + method.loss_) if kept else 0.0:.1%}"
    if isinstance(method, MDS):
        if hasattr(method, "worst_case_"):
            bound = f" (every map: at least {method.worst_case_bound_:.4g})" if method.worst_case_bound_ > 0 else ""
            return "worst case", f"{method.worst_case_:.4g}{bound}"
        return "stress-1", f"{method.stress_1_:.4f}"
    return "loss", progress.format_loss(method.loss_)

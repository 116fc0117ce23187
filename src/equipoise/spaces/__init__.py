"""Metric spaces: sets of points with a distance between any two of them (Rodolà, "Metric spaces").

Every space has a number of points `n`, and computes distances by `distances(i, j)` and `matrix()`; see `MetricSpace`.
"""

from __future__ import annotations

from .._lazy import import_lazily

__all__ = import_lazily(__name__)

"""Find the k nearest neighbours of every point, and estimate the recall, the fraction of true neighbours found."""

from __future__ import annotations

from .search import nearest_neighbors
from .vectors import Graph

__all__ = ["Graph", "nearest_neighbors"]

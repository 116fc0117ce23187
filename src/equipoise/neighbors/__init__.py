"""The k nearest neighbours of every point, with measured recall."""

from __future__ import annotations

from .search import nearest_neighbors
from .vectors import Graph

__all__ = ["Graph", "nearest_neighbors"]

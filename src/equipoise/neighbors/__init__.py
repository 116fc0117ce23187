"""The k nearest neighbours of every point, with measured recall."""

from __future__ import annotations

from .graph import Graph
from .search import nearest_neighbors

__all__ = ["Graph", "nearest_neighbors"]

"""Distances between rows of mixed columns: numbers, dates, booleans, categories, with gaps."""

from __future__ import annotations

from .block_settings import Blocks
from .settings import Mixed

__all__ = ["Blocks", "Mixed"]

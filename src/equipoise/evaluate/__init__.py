"""Measures of a map against its data."""

from __future__ import annotations

from .neighbors import neighbor_recall, one_nn_error

__all__ = ["neighbor_recall", "one_nn_error"]

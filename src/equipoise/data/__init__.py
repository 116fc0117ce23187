"""What comes in: checking input, and the bundled data sets."""

from __future__ import annotations

from .bundled import DATASETS, Dataset, load
from .check import check_distances, check_finite, check_sparse_table, check_table
from .check_given import check_affinities, check_neighbors, check_new_distances, is_neighbors

__all__ = [
    "DATASETS",
    "Dataset",
    "check_affinities",
    "check_distances",
    "check_finite",
    "check_neighbors",
    "check_new_distances",
    "check_sparse_table",
    "check_table",
    "is_neighbors",
    "load",
]

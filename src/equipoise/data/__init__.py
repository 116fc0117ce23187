"""What comes in: checking input, and the bundled data sets."""

from __future__ import annotations

from .bundled import DATASETS, Dataset, load
from .check import check_distances, check_finite, check_table

__all__ = ["DATASETS", "Dataset", "check_distances", "check_finite", "check_table", "load"]

"""Read, check and prepare data, load bundled data sets and toy shapes, and write maps."""

from __future__ import annotations

from ..arrays.namespace import check_finite
from . import toys
from .catalogue import DATASETS, load
from .checks.precomputed_input import check_affinities, check_kernel_matrix, check_neighbors, check_new_distances
from .checks.table_input import (
    as_array,
    check_distances,
    check_rows,
    check_sparse_table,
    check_table,
    is_neighbors,
)
from .dataset import Dataset
from .prepare import Preparation, preparation, prepare
from .read import READERS, read
from .write import check_map_path, write_map

__all__ = [
    "DATASETS",
    "READERS",
    "Dataset",
    "Preparation",
    "as_array",
    "check_affinities",
    "check_distances",
    "check_finite",
    "check_kernel_matrix",
    "check_map_path",
    "check_neighbors",
    "check_new_distances",
    "check_rows",
    "check_sparse_table",
    "check_table",
    "is_neighbors",
    "load",
    "preparation",
    "prepare",
    "read",
    "toys",
    "write_map",
]

"""Checks the user's data once: tables, sparse tables, tensors, distances, neighbour lists, metric spaces, affinities.

Each kind of data has a subclass of `Input`, which returns blocks of distances, distances of listed pairs, neighbours
and principal components.
"""

from __future__ import annotations

from .base import Input
from .make import AFFINITIES, METRICS, is_space, make_input
from .mixed_table import MixedTable
from .precomputed import Affinities, Distances, KernelMatrix
from .space import FromSpace, InputSpace, SpaceLike
from .sparse_table import SparseTable
from .table import Table
from .varying_metric import Varying

__all__ = [
    "AFFINITIES",
    "METRICS",
    "Affinities",
    "Distances",
    "FromSpace",
    "Input",
    "InputSpace",
    "KernelMatrix",
    "MixedTable",
    "SpaceLike",
    "SparseTable",
    "Table",
    "Varying",
    "is_space",
    "make_input",
]

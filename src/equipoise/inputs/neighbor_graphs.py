"""Determines the number of neighbours per point, and builds a connected neighbour graph, for the classical methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array, Matrix
from .._warn import warn
from ..arrays.blocks import FIXED_BRIDGE_ROWS
from ..arrays.csr import make_csr
from ..arrays.namespace import is_auto, is_integer
from ..spaces.graph_geodesic import connect_components
from .base import Input

NEIGHBORS = 10  # n_neighbors="auto"; chosen


def resolve_neighbors(n_neighbors: Any, n: int) -> int:
    """Return the number of neighbours per point for n points; "auto" is 10, but at most n − 1."""
    if is_auto(n_neighbors):
        return min(NEIGHBORS, n - 1)
    return check_n_neighbors(n_neighbors, n, ' or "auto"')


def check_n_neighbors(n_neighbors: Any, n: int, or_else: str = "") -> int:
    """Return n_neighbors, reduced to n − 1 with a warning if it is larger.

    Raise ValueError unless it is an integer >= 1. `or_else` names other accepted values in the error message.
    """
    if not is_integer(n_neighbors) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be an integer >= 1{or_else}, got {n_neighbors!r}")
    return limit_neighbors(int(n_neighbors), n - 1, n)


def limit_neighbors(n_neighbors: int, largest: int, n: int) -> int:
    """Return n_neighbors, reduced to `largest` with a warning if it is larger."""
    if n_neighbors > largest:
        warn(f"n_neighbors={n_neighbors} is too large for n_samples={n}; n_neighbors={largest} is used")
    return min(n_neighbors, largest)


def neighbor_graph(data: Input, k: int, n_threads: int) -> tuple[Matrix, float]:
    """Return the graph, CSR (n, n), of distances to the k nearest neighbours of each point, and the search's recall.

    If the graph is not connected, its components are joined by the shortest possible edges, with a warning. A
    precomputed graph is returned unchanged, whether it is connected or not.
    """
    D2, recall = data.measured_neighbors(k, n_threads)
    graph = make_csr(np.sqrt(D2.data), D2.indices, D2.indptr, D2.shape)
    if data.sparse:
        return graph, recall

    def closest(inside: Array, outside: Array) -> tuple[int, int, float]:
        best = (-1, -1, np.inf)
        for start in range(0, len(inside), FIXED_BRIDGE_ROWS):
            part = inside[start : start + FIXED_BRIDGE_ROWS]
            with np.errstate(over="ignore", invalid="ignore"):  # raises below
                d2 = data.squared_to_all(data.rows(part))[:, outside]
            i, j = np.unravel_index(d2.argmin(), d2.shape)
            if d2[i, j] < best[2]:
                best = (int(part[i]), int(outside[j]), float(d2[i, j]))
        if best[0] < 0:
            raise ValueError(
                f"point {inside[0]} and the points connected to it in the neighbour graph are so far from all other"
                " points that the squared distances overflow; remove these points, or use a larger n_neighbors"
            )
        return best[0], best[1], float(np.sqrt(best[2]))

    return connect_components(graph, closest), recall

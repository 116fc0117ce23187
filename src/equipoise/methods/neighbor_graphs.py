"""Neighbours as the classical methods want them: so many of each point, in lists or as a connected graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import make_csr
from ..inputs import Distances, Input
from ..spaces.graph_geodesic import connect_components

NEIGHBORS = 10  # of "auto"; chosen
ROWS = 1024  # distances to all are held for so many points at once


def resolve_neighbors(n_neighbors: Any, n: int) -> int:
    """Return a number of neighbours; "auto" is 10, n − 1 on fewer points."""
    if isinstance(n_neighbors, str) and n_neighbors == "auto":
        return min(NEIGHBORS, n - 1)
    return check_n_neighbors(n_neighbors, n, ' or "auto"')


def check_n_neighbors(n_neighbors: Any, n: int, or_else: str = "") -> int:
    """Return a number of neighbours that each of n points has; `or_else` says what else would have been understood."""
    if not isinstance(n_neighbors, int | np.integer) or isinstance(n_neighbors, bool) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be a whole number of at least 1{or_else}, got {n_neighbors!r}")
    return limited(int(n_neighbors), n - 1, n)


def limited(n_neighbors: int, most: int, n: int) -> int:
    """Return a number of neighbours, or the most that n points allow, with a warning."""
    if n_neighbors > most:
        warn(f"n_neighbors={n_neighbors} is too large for n_samples={n}; n_neighbors={most} is used")
    return min(n_neighbors, most)


def neighbor_graph(data: Input, k: int, n_threads: int) -> tuple[Matrix, float]:
    """Return the distances to the k nearest of each point, CSR (n, n), as a connected graph, and the recall.

    A graph given by the user stays as it is. One that falls apart is joined by its shortest bridges, with a warning.
    """
    D2, recall = data.measured_neighbors(k, n_threads)
    graph = make_csr(np.sqrt(D2.data), D2.indices, D2.indptr, D2.shape)
    if isinstance(data, Distances) and data.sparse:
        return graph, recall

    def closest(inside: Array, outside: Array) -> tuple[int, int, float]:
        best = (-1, -1, np.inf)
        for start in range(0, len(inside), ROWS):
            part = inside[start : start + ROWS]
            d2 = data.squared_to_all(data.rows(part))[:, outside]
            i, j = np.unravel_index(d2.argmin(), d2.shape)
            if d2[i, j] < best[2]:
                best = (int(part[i]), int(outside[j]), float(d2[i, j]))
        return best[0], best[1], float(np.sqrt(best[2]))

    return connect_components(graph, closest), recall

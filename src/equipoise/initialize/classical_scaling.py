"""Initial maps of MDS: classical scaling, principal components, random, or user-supplied."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra

from .._types import Array, Matrix
from ..inputs import Input, Table
from ..linalg.pca import double_center, finish, fix_signs, one_blas_thread, top_eigenvectors
from .random import random_ball
from .start import check_init

INITS = ("auto", "classical", "pca", "random")
PIVOTS = 200  # points whose δ to all others classical scaling uses; chosen
GRAPH_PIVOTS = 50  # the same if shortest paths replace missing δ, with one search per point; chosen


def check_start(init: Any, source: Input) -> None:
    """Raise for the initial map "pca" if the input is not a dense table."""
    if isinstance(init, str) and init == "pca" and not isinstance(source, Table):
        raise ValueError('init="pca" needs a dense table of coordinates; use init="classical", "random" or an array')


def first_map(init: Any, source: Input, known: Matrix | None, d: int, rng: np.random.RandomState) -> Array:
    """Return the initial map (n, d) of the first run of MDS.

    `known` is a CSR matrix (n, n) of the known dissimilarities δ with positive weight. It is None if every pair is
    known and has positive weight.
    """
    if not isinstance(init, str):
        return check_init(init, source.n, d)
    if init == "random":
        return random_ball(source.n, d, rng)
    if init == "pca" or (source.points is not None and known is None):
        return source.principal(d, rng)
    return _classical(source, known, d, rng)


def _classical(source: Input, known: Matrix | None, d: int, rng: np.random.RandomState) -> Array:
    """Return the map of pivot MDS (Brandes & Pich 2007): classical scaling from k random points, the pivots.

    C (n, k) contains the squared dissimilarities δ² from all points to the pivots, double-centred. If `known` is not
    None, δ is the length of the shortest path along known pairs. Each axis of the map is C v / ‖C v‖^½ for an
    eigenvector v of CᵀC; for k = n it is an axis of classical scaling. A little noise is added.
    """
    count = min(source.n, PIVOTS if known is None else GRAPH_PIVOTS)
    pivots = np.sort(rng.choice(source.n, count, replace=False))
    if known is None:
        D = source.block(np.arange(source.n), pivots)
    else:
        D = dijkstra(known, directed=False, indices=pivots).T
    C = (D / max(D.max(), np.finfo(np.float64).tiny)) ** 2
    double_center(C)
    with one_blas_thread():
        scores = fix_signs(C @ top_eigenvectors(C.T @ C, d)[1])
    length = np.linalg.norm(scores, axis=0)
    scores /= np.sqrt(np.maximum(length, np.finfo(np.float64).tiny))
    return finish(scores, d, rng)

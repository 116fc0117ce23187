"""Initial maps from affinities: Laplacian eigenmaps of each connected component, placed side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import is_on_device, on_host
from ..arrays.namespace import to_numpy
from ..linalg.eigen import SMALL
from ..linalg.laplacian import eigenmap, is_connected
from ..linalg.pca import finish, one_blas_thread

TINY = 8  # components of up to this many points are placed on a circle; chosen
# Maximum restarts of the Lanczos iteration, each about 20 products: a bound on the time; chosen. Measured on 70,000
# images of Fashion-MNIST: 212 products were enough, 4 s on one core.
RESTARTS = 100
TOLERANCE = 1e-4  # error of an eigenvalue, all at most 1; chosen: an initial map need not be more accurate
STEPS = 100  # smoothing steps if the Lanczos iteration does not converge; chosen
FILL = 0.8  # fraction of its cell that a component covers; chosen


def spectral(W: Matrix, d: int, rng: np.random.RandomState) -> Array:
    """Return a map (n, d) from symmetric affinities W: the first d nontrivial solutions of L y = λ D y.

    The diagonal matrix D contains the row sums of W, and L = D − W is the graph Laplacian (Belkin & Niyogi 2003).
    If there are several connected components, the equation is solved for each of them, except that a component of at
    most TINY points becomes a circle. Each component is scaled to a cell whose volume is proportional to its number of
    points, and the cells are placed row by row, the largest first. As in `principal_components`, the map has standard
    deviation 1 along the first axis, and a little noise is added. If W is on a device, the eigenvectors are computed on
    that device; with few points (see `_on_device`) or several components, they are computed on the CPU.
    """
    if is_on_device(W):
        Y = _on_device(W, d)
        if Y is not None:
            return finish(Y - Y.mean(axis=0), d, rng)
        W = on_host(W)
    with one_blas_thread():
        members = _components(W)
        if len(members) == 1:
            Y = _eigenmap(W, d)
            return finish(Y - Y.mean(axis=0), d, rng)
        cells = np.array([len(rows) ** (1 / d) for rows in members])
        corners = shelves(cells, d)
        Y = np.empty((W.shape[0], d))
        for rows, side, corner in zip(members, cells, corners, strict=True):
            Y[rows] = corner + side / 2 * (1 + FILL * _in_unit_box(W, rows, d))
    return finish(Y - Y.mean(axis=0), d, rng)


def _on_device(W: Any, d: int) -> Array | None:
    """Return the eigenmap of affinities on a device; None if n ≤ SMALL, n < 5 d, or there are several components."""
    n = W.shape[0]
    return None if n <= SMALL or 5 * d > n or not is_connected(W) else _eigenmap(W, d)


def _components(W: Matrix) -> list[Array]:
    """Return the points of each connected component, the largest first."""
    n = W.shape[0]
    if not sparse.issparse(W) and np.count_nonzero(W[0]) >= n - 1:
        return [np.arange(n)]  # every point is a neighbour of the first one
    # W is symmetric, so its strong components are its components; finding these needs no transpose.
    count, labels = connected_components(W, directed=True, connection="strong")
    sizes = np.bincount(labels, minlength=count)
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    return [members[c] for c in np.argsort(-sizes, kind="stable")]


def shelves(sides: Array, d: int) -> Array:
    """Pack cubes, whose sides are in descending order, into roughly a cube; return their lowest corners (m, d).

    Cubes are placed in rows, rows in layers, and layers on top of one another. The first cube of a row or layer is the
    largest in it.
    """
    # The side of a cube of the total volume, plus some more, so that three equal cubes are placed as 2 + 1.
    length = (sides**d).sum() ** (1 / d) + 0.6 * sides[0]
    corners = np.empty((len(sides), d))
    corner, depth = np.zeros(d), np.zeros(d)  # corner of the next cube; depth of the current row, layer, …
    for i, side in enumerate(sides):
        axis = 0
        while axis < d - 1 and corner[axis] + side > length:  # full along this axis: start the next row or layer
            corner[axis], depth[axis] = 0.0, 0.0
            axis += 1
            corner[axis] += depth[axis]
            depth[axis] = 0.0
        corners[i] = corner
        depth[1:] = np.maximum(depth[1:], side)
        corner[0] += side
    return corners


def _in_unit_box(W: Matrix, rows: Array, d: int) -> Array:
    """Return the map (m, d) of one component, with coordinates in [−1, 1]."""
    m = len(rows)
    if m <= TINY:
        return _ring(m, d)
    scores = _eigenmap(_submatrix(W, rows), d)
    Y = np.zeros((m, d))
    Y[:, : scores.shape[1]] = scores / np.maximum(np.abs(scores).max(axis=0), np.finfo(np.float64).tiny)
    return Y


def _ring(m: int, d: int) -> Array:
    """Return m points spaced evenly on a circle, or on a line if d = 1; a single point at 0."""
    Y = np.zeros((m, d))
    if m > 1 and d == 1:
        Y[:, 0] = np.linspace(-1, 1, m)
    elif m > 1:
        angle = 2 * np.pi * np.arange(m) / m
        Y[:, 0], Y[:, 1] = np.cos(angle), np.sin(angle)
    return Y


def _submatrix(W: Matrix, rows: Array) -> Matrix:
    """Return the affinities among `rows`, the sorted indices of all points of one connected component."""
    if not sparse.issparse(W):
        return W[np.ix_(rows, rows)]
    part = W[rows]
    return sparse.csr_matrix((part.data, np.searchsorted(rows, part.indices), part.indptr), shape=(len(rows),) * 2)


def _eigenmap(W: Matrix, d: int) -> Array:
    """Return the eigenmap (n, min(d, n − 1)) of one component; warn if its eigenvectors do not converge."""
    Y, converged = eigenmap(W, d, TOLERANCE, RESTARTS, STEPS)
    if not converged:
        _warn_not_converged(W.shape[0])
    return to_numpy(Y)


def _warn_not_converged(n: int) -> None:
    warn(
        f"the spectral initial map of {n:,} points did not converge in {RESTARTS} restarts and is replaced by {STEPS}"
        ' smoothing steps; to save the time of these computations, use init="random" or pass an array as init',
    )

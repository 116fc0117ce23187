"""Check precomputed input: neighbours, affinities, and distances from new points to fitted points."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._types import Array, Matrix
from ...arrays.blocks import row_blocks
from ...arrays.csr import check_indices, entry_rows, make_csr, shorten
from ...arrays.namespace import to_numpy
from ...arrays.numbers import as_numbers
from ...neighbors import Graph
from .table_input import bad_entry


def check_neighbors(X: Any, n: int | None = None) -> Matrix:
    """Return the distances to neighbours as a CSR matrix (m, n) with sorted column indices.

    Parameters
    ----------
    X : Graph or pair of arrays, shape (m, k) each
        Indices and distances of the k neighbours of each of m points.
    n : int, default=None
        Number of points that the indices refer to. By default these are the m points themselves, and each point is
        removed from its own list, because scikit-learn's `kneighbors` and faiss can list a point as its own neighbour.
    """
    indices, distances = _two_tables(X)
    m, k = indices.shape
    own = n is None
    n = m if n is None else n
    columns, values = np.empty(m * k, np.int32), np.empty(m * k)
    counts, size = np.empty(m, np.int64), 0
    for rows in row_blocks(m, 16 * k):
        block = indices[rows], np.asarray(distances[rows], dtype=np.float64)
        sorted_indices, sorted_distances = _sorted_rows(*block, rows.start, n)
        keep = (
            sorted_indices != np.arange(rows.start, rows.stop)[:, None] if own else np.ones(sorted_indices.shape, bool)
        )
        counts[rows] = keep.sum(axis=1)
        end = size + int(counts[rows].sum())
        columns[size:end], values[size:end] = sorted_indices[keep], sorted_distances[keep]
        size = end
    return make_csr(shorten(values, size), shorten(columns, size), np.concatenate([[0], np.cumsum(counts)]), (m, n))


def _sorted_rows(indices: Array, distances: Array, first: int, n: int) -> tuple[Array, Array]:
    """Check a block of rows that begins at row `first`, and return it with each row sorted by index."""
    _check_entries(indices, distances, first, n)
    order = np.argsort(indices, axis=1, kind="stable")
    indices, distances = np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
    repeated = np.argwhere(indices[:, 1:] == indices[:, :-1])
    if repeated.size:
        i, t = repeated[0]
        raise ValueError(
            f"row {first + i} of indices contains the neighbour {indices[i, t]} twice; list each neighbour once"
        )
    return indices, distances


def _two_tables(X: Any) -> tuple[Array, Array]:
    """Return indices and distances, (m, k) each; raise if their shapes or types are wrong."""
    indices, distances = (X.indices, X.distances) if isinstance(X, Graph) else X
    indices, distances = to_numpy(indices), to_numpy(distances)
    if indices.ndim != 2 or indices.shape != distances.shape or indices.size == 0:
        raise ValueError(
            "indices and distances must be nonempty arrays of the same shape (n, k), got shapes"
            f" {indices.shape} and {distances.shape}"
        )
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"indices must be integers, got {indices.dtype}; pass the pair (indices, distances), in this order:"
            " scikit-learn's kneighbors returns (distances, indices)"
        )
    if distances.dtype.kind not in "iuf":
        raise ValueError(f"distances must be numbers, got {distances.dtype}")
    return indices, distances


def _check_entries(indices: Array, distances: Array, first: int, n: int) -> None:
    """Raise if an index is out of range or a distance is negative or not finite."""
    missing = np.argwhere(indices == -1)
    if missing.size:
        i, t = missing[0]
        raise ValueError(
            f"row {first + i} of indices has -1 at column {t}, which means that the search found fewer neighbours than"
            " requested; request fewer, or search more thoroughly (nprobe or efSearch in faiss)"
        )
    outside = np.argwhere((indices < 0) | (indices >= n))
    if outside.size:
        i, t = outside[0]
        raise ValueError(
            f"row {first + i} of indices contains {indices[i, t]}, but point indices run from 0 to {n - 1}"
        )
    if (bad := bad_entry(distances)) is not None:
        i, t, value, kind = bad
        raise ValueError(f"distances must be finite and nonnegative: distances[{first + i}, {t}] = {value:g} is {kind}")


def check_new_distances(X: Any, n: int) -> Matrix:
    """Return the distances (m, n) from new points to the n fitted points as float64, dense or CSR."""
    X = as_numbers(X, accept_sparse="csr")
    if X.shape[1] != n:
        raise ValueError(f"X has shape {X.shape}; expected distances (m, {n}) to the fitted points")
    check_indices(X)
    if (bad := bad_entry(X)) is not None:
        i, j, value, kind = bad
        raise ValueError(f"distances must be finite and nonnegative: X[{i}, {j}] = {value:g} is {kind}")
    return sparse.csr_matrix(X.sorted_indices()) if sparse.issparse(X) else X


def check_affinities(P: Any, n: int | None = None) -> Matrix:
    """Return a copy of precomputed affinities in float64, dense or CSR.

    They must be finite and nonnegative, with a positive entry in every row.

    Parameters
    ----------
    P : array or sparse matrix, shape (n, n), or (m, n) if `n` is passed
    n : int, default=None
        Number of fitted points if the rows of P are new points. By default P is square, and its diagonal is set to 0.
    """
    own = n is None
    P = as_numbers(P, accept_sparse="csr", ensure_min_samples=2 if own else 1, copy=True)
    if P.shape[1] != (P.shape[0] if own else n):
        wanted = "be square" if own else f"have shape (m, {n}), one column per fitted point"
        raise ValueError(f"precomputed affinities must {wanted}; got shape {P.shape}")
    P = sparse.csr_matrix(P) if sparse.issparse(P) else P
    check_indices(P)
    if (bad := bad_entry(P)) is not None:
        i, j, value, kind = bad
        raise ValueError(f"precomputed affinities must be finite and nonnegative: P[{i}, {j}] = {value:g} is {kind}")
    if own:
        _clear_diagonal(P)
    if sparse.issparse(P):
        P.sum_duplicates()
        P.eliminate_zeros()
    empty = np.flatnonzero(np.diff(P.indptr) == 0 if sparse.issparse(P) else P.max(axis=1) == 0)
    if empty.size:
        raise ValueError(
            f"row {empty[0]} of the precomputed affinities has no positive entry{' off the diagonal' if own else ''};"
            " add a neighbour, or remove the point"
        )
    return P


def check_kernel_matrix(K: Any, n: int | None = None) -> Array:
    """Return a precomputed kernel as float64: symmetric (n, n), or (m, n) between new points and n fitted points."""
    own = n is None
    K = as_numbers(K, ensure_min_samples=2 if own else 1)
    if K.shape[1] != (K.shape[0] if own else n):
        wanted = "be square" if own else f"have shape (m, {n}), one column per fitted point"
        raise ValueError(f"a precomputed kernel must {wanted}; got shape {K.shape}")
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"a precomputed kernel must be finite, but K[{i}, {j}] = {K[i, j]}")
    if own and (asymmetric := np.argwhere(np.abs(K - K.T) > 1e-8 * np.abs(K).max())).size:
        i, j = asymmetric[0]
        raise ValueError(
            f"a precomputed kernel must be symmetric, but K[{i}, {j}] = {K[i, j]:g} and K[{j}, {i}] = {K[j, i]:g}"
        )
    return K


def _clear_diagonal(P: Matrix) -> None:
    """Set the diagonal of P to zero in place."""
    if sparse.issparse(P):
        P.data[entry_rows(P) == P.indices] = 0.0
    else:
        np.fill_diagonal(P, 0.0)

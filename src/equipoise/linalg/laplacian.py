"""Compute Laplacian eigenmaps of symmetric affinities, on the CPU or on a device (Belkin & Niyogi 2003)."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from .._types import Array, Matrix
from ..arrays.csr import dense, entry_rows, is_on_device, make_csr, row_sums, times_vector
from ..arrays.namespace import array_namespace, at_least, is_numpy, to_float64
from .eigen import SMALL
from .pca import fix_signs, top_eigenvectors


class NormalizedAffinities:
    """The normalised affinities D^(−1/2) W D^(−1/2).

    `times` multiplies by them in float32, and `matrix` returns them in float64.

    Parameters
    ----------
    W : symmetric matrix of shape (n, n)
        Dense, CSR, or CSR on a device; D is the diagonal matrix of its row sums.

    Attributes
    ----------
    root : array of shape (n,)
        √D_ii, an eigenvector of the normalised affinities with eigenvalue 1.
    """

    def __init__(self, W: Any):
        degree = row_sums(W)
        xp = array_namespace(degree)
        self.W = W
        self.root = xp.sqrt(at_least(degree, 1e-30 * float(xp.max(degree))))  # float32 can represent its inverse

    @cached_property
    def _single(self) -> tuple[Any, Any, Any]:
        """W, the values 1/√D_ii, and the unit vector along `root`, in float32."""
        xp, root = array_namespace(self.root), self.root
        W = self.W.astype(np.float32) if is_numpy(self.W) and self.W.dtype != np.float32 else self.W
        return W, xp.astype(1 / root, xp.float32), xp.astype(root / (root @ root) ** 0.5, xp.float32)

    def times(self, U: Any) -> Any:
        """Return the product of the normalised affinities with U (n, b), in float32 and summed in a fixed order.

        The component along the eigenvector `root` is removed from U and from the product.
        """
        W, inverse, trivial = self._single
        U = U - trivial[:, None] * (trivial @ U)
        V = inverse[:, None] * U
        on_threads = sparse.issparse(W) and V.shape[1] == 1
        U = inverse[:, None] * (times_vector(W, V[:, 0])[:, None] if on_threads else W @ V)
        return U - trivial[:, None] * (trivial @ U)

    def matrix(self) -> Matrix:
        """Return the normalised affinities in float64, dense or CSR like W; W must be in host memory."""
        W, root = self.W, self.root
        if not sparse.issparse(W):
            return np.asarray(W, dtype=np.float64) / np.outer(root, root)
        return make_csr(W.data / (root[entry_rows(W)] * root[W.indices]), W.indices, W.indptr, W.shape)


def normalized_laplacian(W: Matrix) -> tuple[Matrix, Array]:
    """Return I − D^(−1/2) W D^(−1/2), CSR, and √D_ii (n,), where D_ii are the row sums of symmetric CSR W (n, n)."""
    A = NormalizedAffinities(W)
    return (sparse.identity(W.shape[0], format="csr") - A.matrix()).tocsr(), A.root


def eigenmap(W: Any, d: int, tol: float, restarts: int, steps: int) -> tuple[Any, bool]:
    """Return D^(−1/2) times the leading eigenvectors of D^(−1/2) W D^(−1/2), and whether they converged.

    The diagonal matrix D contains the row sums of W, whose graph must be connected. The result is (n, min(d, n − 1)),
    in float64, on the device of W. It omits the first eigenvector, because D^(−1/2) times that vector is constant. If
    the eigenvectors do not converge to `tol` within `restarts` restarts, the result of `steps` steps of orthogonal
    iteration replaces them.
    """
    A = NormalizedAffinities(W)
    count, converged = min(d, W.shape[0] - 1), True
    if is_on_device(W):
        V, converged = _by_blocks(A, count, tol, restarts, steps)
    elif W.shape[0] <= SMALL:
        V = _decompose(A, count)
    else:
        V, converged = _by_arpack(A, count, tol, restarts, steps)
    return fix_signs(to_float64(V) / A.root[:, None]), converged


def _decompose(A: NormalizedAffinities, count: int) -> Array:
    """Return the `count` leading eigenvectors by a decomposition of the dense matrix, which is fast for few points."""
    M = dense(A.matrix())
    trivial = A.root / np.linalg.norm(A.root)
    M -= 2 * np.outer(trivial, trivial)  # moves its eigenvalue from 1 to −1, below all others
    return top_eigenvectors(M, count)[1]


def _by_arpack(A: NormalizedAffinities, count: int, tol: float, restarts: int, steps: int) -> tuple[Array, bool]:
    """Return the `count` leading eigenvectors of affinities on the CPU, found by ARPACK, and whether they converged.

    On a CPU, ARPACK is faster than `_by_blocks`, which took 4 to 9 times as long for 20,000 points and 1.6 times as
    long for 70,000 (UMAP's graphs of MNIST, 15 neighbours, 2 eigenvectors, tolerance 1e-4; medians of 5 runs on two
    cores).
    """
    n = len(A.root)
    start = np.random.RandomState(0).standard_normal((n, count)).astype(np.float32)

    def multiply(x: Array) -> Array:
        return A.times(x.reshape(n, 1).astype(np.float32, copy=False)).ravel()

    operator = LinearOperator((n, n), matvec=multiply, dtype=np.float32)
    try:
        values, V = eigsh(operator, count, which="LA", v0=start[:, 0], tol=tol, maxiter=restarts)
        return V[:, np.argsort(-values)], True
    except ArpackNoConvergence:
        return _smooth(A, start, steps), False


def _by_blocks(A: NormalizedAffinities, count: int, tol: float, restarts: int, steps: int) -> tuple[Any, bool]:
    """Return the `count` leading eigenvectors on a device, found by block Lanczos, and whether they converged."""
    from .lanczos import WIDTH, NotConverged, lanczos, start_block

    n, xp = A.root.shape[0], array_namespace(A.root)
    like = xp.astype(A.root, xp.float32)
    try:
        return lanczos(A.times, start_block(n, min(count, WIDTH), like), count, tol, restarts)[1], True
    except NotConverged:
        return _smooth(A, start_block(n, count, like), steps), False


def _smooth(A: NormalizedAffinities, V: Any, steps: int) -> Any:
    """Return V (n, b) after `steps` steps of orthogonal iteration with (I + A)/2.

    (I + A)/2 has the same leading eigenvectors as A, but no negative eigenvalues.
    """
    # NumPy's own QR would compute in float64.
    qr = partial(linalg.qr, mode="economic") if isinstance(V, np.ndarray) else array_namespace(V).linalg.qr
    for _ in range(steps):
        V = qr(V + A.times(V))[0]
    return V


def is_connected(W: Any) -> bool:
    """Return whether the graph of W, a symmetric CSR matrix on a device, is connected.

    Every point repeatedly adopts the smallest label among its own and its neighbours', until no label changes.
    """
    import torch

    label = torch.arange(W.shape[0], device=W.device)
    while True:
        nearby = torch.segment_reduce(
            label[W.indices].double(), "min", offsets=W.indptr, axis=0, initial=float(len(label))
        )
        lower = torch.minimum(label, nearby.long())
        lower = lower[lower]  # a label is the index of a point, whose own label may be smaller still
        if torch.equal(lower, label):
            return not bool(label.any())
        label = lower

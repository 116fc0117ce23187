"""Kernels, data, finite differences and error measures for tests."""

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits

from equipoise.kernels import (
    Gaussian,
    Kernel,
    Membership,
    NonMembership,
    PowerLaw,
    RegularizedPowerLaw,
    SphericalExit,
    StudentT,
)

KERNELS = (
    Gaussian(),
    StudentT(),
    StudentT(0.5),
    StudentT(3.0),
    PowerLaw(),
    PowerLaw(3.0, 0.5),
    RegularizedPowerLaw(),
    RegularizedPowerLaw(1.2, 0.5),
    RegularizedPowerLaw(3.0, 0.1),
    SphericalExit(),
    SphericalExit(0.3, 2),
    Membership.fitted(0.1, 1.0),
    NonMembership(1.6, 0.9, 0.01),
)


class UserKernel(Kernel):
    """A user-defined kernel in NumPy: k = (1 + d2)^(-3/2)."""

    def value(self, d2):
        return (1 + d2) ** -1.5

    def slope(self, d2):
        return -1.5 * (1 + d2) ** -2.5

    def __repr__(self):
        return "UserKernel()"  # without an address: parallel workers need equal test ids


def misaligned(a):
    """Return a copy whose first element is one byte after an aligned address."""
    buffer = np.empty(a.nbytes + 16, np.uint8)
    start = -buffer.ctypes.data % 16 + 1
    view = buffer[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def unequal_digits(n):
    """Return the first n digits of scikit-learn with jitter, so that no two distances are equal."""
    X = load_digits().data[:n]
    return X + 0.01 * np.random.default_rng(0).standard_normal(X.shape)


def differences(f, Y, h=1e-5):
    """Return the gradient of f at Y by central differences."""
    found = np.zeros_like(Y)
    for at in np.ndindex(*Y.shape):
        step = np.zeros_like(Y)
        step[at] = h
        found[at] = (f(Y + step) - f(Y - step)) / (2 * h)
    return found


def changed(A, i, j, value, both=False):
    """Return a copy of A with another value at [i, j], and at [j, i] if `both`."""
    A = A.copy()
    A[i, j] = value
    if both:
        A[j, i] = value
    return A


def relative_error(result, truth):
    """Return the largest deviation divided by the largest absolute entry of the truth."""
    return float(np.abs(np.asarray(result) - truth).max() / np.abs(truth).max())


def norm_error(result, truth):
    """Return the error that `tol` bounds: the norm of the deviation, relative to that of the truth."""
    return float(np.linalg.norm(result - truth) / np.linalg.norm(truth))


def correlations(A, B):
    """Return the absolute correlations between corresponding columns of A and B."""
    return np.abs([np.corrcoef(a, b)[0, 1] for a, b in zip(A.T, B.T, strict=True)])


def to_dense(A):
    """Return a dense or SciPy sparse matrix as a NumPy array."""
    return A.toarray() if sparse.issparse(A) else A


def without_diagonal(A):
    """Return a sparse matrix in CSR without its diagonal. SciPy before 1.13 warns when `setdiag` adds entries."""
    A = sparse.coo_matrix(A)
    kept = A.row != A.col
    return sparse.csr_matrix((A.data[kept], (A.row[kept], A.col[kept])), shape=A.shape)


def clump(rng, n, width, reach):
    """Return n points: a clump of this width, and eight points out of a thousand up to `reach` away from it.

    t-SNE of a million points looks so in its first iterations.
    """
    Y = width * rng.standard_normal((n, 2))
    Y[: n // 125] *= np.geomspace(1, reach / width, n // 125)[:, None] / 3
    return np.clip(Y, -reach, reach).astype(np.float32)

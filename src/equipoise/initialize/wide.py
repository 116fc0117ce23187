"""Initial maps that are spread over several kernel lengths, for losses whose forces cannot expand a small map."""

from __future__ import annotations

import numpy as np

from .._types import Array, Matrix
from ..arrays.csr import make_csr, symmetrized
from ..inputs import Input
from .spectral import spectral

# Extents of the maps, largest |coordinate| in kernel lengths. Measured with double-kernel PCA on 1000 points of a Swiss
# roll, an S-curve, digits, MNIST, Fashion-MNIST and on iris: of 1, 3, 10 and 30 these two reached the lowest losses.
EIGENMAP_EXTENT = 10.0
PRINCIPAL_EXTENT = 3.0
# Error of an eigenvalue. With 1e-4, as for small maps, errors of the eigenvectors exceed the distances between
# neighbours: the final loss on 900 points of a Swiss roll was 0.714 n instead of 0.685 n.
TOLERANCE = 1e-6


def wide_eigenmap(D2: Matrix, d: int, length: float) -> Array:
    """Return the Laplacian eigenmap (n, d) of a neighbour graph with equal edge weights, `D2` CSR (n, n).

    The largest coordinate is `EIGENMAP_EXTENT` times the kernel length. There is no noise: on a map of this extent it
    would exceed the distances between neighbours, and change which points are neighbours.
    """
    A = make_csr(np.ones(D2.nnz), D2.indices, D2.indptr, D2.shape)
    return _scaled(spectral(symmetrized(A), d, None, TOLERANCE), EIGENMAP_EXTENT * length)


def wide_principal(data: Input, d: int, length: float) -> Array:
    """Return the principal components (n, d) of the data without noise, with extent `PRINCIPAL_EXTENT` lengths."""
    return _scaled(data.principal(d, None), PRINCIPAL_EXTENT * length)


def _scaled(Y: Array, extent: float) -> Array:
    """Return Y scaled so that its largest |coordinate| is `extent`; a map of coincident points stays unchanged."""
    largest = float(np.abs(Y).max())
    return Y * (extent / largest) if largest > 0 else Y

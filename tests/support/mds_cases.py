"""Dissimilarities for the MDS tests, and a direct evaluation of the stress."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import pairwise_distances

X = np.random.RandomState(0).standard_normal((70, 6)) * [3, 2, 1, 1, 1, 1]
D = squareform(pdist(X))
Y = 2 * np.random.RandomState(1).standard_normal((70, 2))
RNG = np.random.RandomState(2)
W = RNG.uniform(0.2, 3, D.shape)
W = np.triu(W, 1) + np.triu(W, 1).T
MISSING = np.triu(RNG.uniform(size=D.shape) < 0.3, 1)
MISSING |= MISSING.T
KNOWN = sparse.csr_matrix(np.where(MISSING, 0, D))
SPARSE = sparse.csr_matrix(np.where(W > 1, W, 0))


def stress(delta, Y, weights=1.0):
    """Return Σ_{i<j} w (d − δ)² and its gradient, evaluated directly in float64."""
    d = squareform(pdist(np.asarray(Y, dtype=np.float64)))
    w = weights * (1 - np.eye(len(d)))
    factor = w * (1 - np.divide(delta, d, out=np.zeros_like(d), where=d > 0))
    return float((w * (d - delta) ** 2).sum() / 2), 2 * (factor.sum(axis=1)[:, None] * Y - factor @ Y)


def rigid_error(A, B):
    """Return the largest deviation between two configurations after the best isometry, relative to their size."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    R, _ = orthogonal_procrustes(A, B)
    return float(np.abs(A @ R - B).max() / np.abs(B).max())


class City:
    """A user-defined metric space: the rows of X under the city-block distance."""

    def __init__(self, X):
        self.X, self.n = X, len(X)

    def distances(self, i=None, j=None):
        i, j = (slice(None) if k is None else k for k in (i, j))
        return pairwise_distances(self.X[i], self.X[j], metric="manhattan")

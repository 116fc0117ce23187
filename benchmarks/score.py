"""The same scores for all tools: exact nearest neighbours, and KL(P ‖ Q) on one P for every map."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from equipoise.affinities import perplexity as affinities
from equipoise.engines.exact import Exact
from equipoise.kernels import StudentT
from equipoise.neighbors.search import Searcher

PERPLEXITY = 30.0
K = 90
CHECKED = 2000  # up to this many points the KL is computed a second time, in plain NumPy


class Truth:
    """The exact K nearest neighbours of X (n, D), nearest first, and the joint P at perplexity 30 over them."""

    def __init__(self, X: np.ndarray, threads: int):
        self.threads, n = threads, len(X)
        graph = Searcher(X, "euclidean", threads).nearest(X, K + 1)  # full scan in float32, refined in float64
        order = np.argsort(graph.distances, axis=1, kind="stable")
        indices = np.take_along_axis(graph.indices, order, axis=1)
        self.neighbors, kept = without_self(indices)
        d2 = np.square(np.take_along_axis(graph.distances, order, axis=1)[kept])
        D2 = csr_matrix((d2, self.neighbors.ravel(), np.arange(0, n * K + 1, K)), shape=(n, n))
        conditional = affinities.conditional(D2, np.array([PERPLEXITY]), np.float64, threads)
        self.P = affinities.joint(conditional)

    def kl(self, Y: np.ndarray) -> float:
        """Return KL(P ‖ Q), Q = k/Z with k = 1/(1 + d2) and Z over all pairs, in float64 throughout."""
        Y = np.ascontiguousarray(Y, dtype=np.float64)
        engine, kernel = Exact(self.threads), StudentT()
        log_k, _ = engine.edges(Y, self.P, kernel, -1.0, potential=True)  # Σ P log k
        Z = float(engine.field(Y, kernel).potential.sum())
        value = entropy_term(self.P.data) - log_k + np.log(Z)
        if len(Y) <= CHECKED:
            np.testing.assert_allclose(value, plain_kl(self.P, Y), rtol=1e-10)
        return value

    def recall(self, found: np.ndarray) -> float:
        """Return the share of the true k nearest neighbours among those found (n, k), averaged over all points."""
        k = found.shape[1]
        return float(np.mean([np.isin(a[:k], b).mean() for a, b in zip(self.neighbors, found, strict=True)]))

    def kept(self, Y: np.ndarray, k: int = 10) -> float:
        """Return the share of the k nearest in X that are among the k nearest in the map, over all points."""
        near = map_neighbors(Y, k, self.threads)
        return float(np.mean([np.isin(a[:k], b).mean() for a, b in zip(self.neighbors, near, strict=True)]))


def plain_kl(P: csr_matrix, Y: np.ndarray) -> float:
    """Return KL(P ‖ Q) from the n × n matrix Q, by the definition."""
    d2 = ((Y[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
    k = 1 / (1 + d2)
    np.fill_diagonal(k, 0.0)
    i, j = P.nonzero()
    p, q = np.asarray(P[i, j]).ravel(), k[i, j] / k.sum()
    return float((p * np.log(p / q)).sum())


def entropy_term(p: np.ndarray) -> float:
    """Return Σ p log p."""
    p = p[p > 0]
    return float((p * np.log(p)).sum())


def map_neighbors(Y: np.ndarray, k: int, threads: int) -> np.ndarray:
    """Return the k nearest points of each in the map, (n, k), exactly."""
    Y = np.asarray(Y, dtype=np.float64)
    return without_self(cKDTree(Y).query(Y, k + 1, workers=threads)[1])[0]


def one_nn_error(Y: np.ndarray, labels: np.ndarray, threads: int) -> float:
    """Return the share of points whose nearest neighbour in the map has another class."""
    return float((labels[map_neighbors(Y, 1, threads)[:, 0]] != labels).mean())


def without_self(found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return neighbours (n, k) from a search for k + 1 that includes the point itself, and the mask of those kept."""
    n, width = found.shape
    own = found == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # more than k duplicates: drop the farthest instead
    return found[~own].reshape(n, width - 1), ~own

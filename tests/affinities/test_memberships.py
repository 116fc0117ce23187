"""Memberships of UMAP, written out point by point (docs/math.md, section 3)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

import equipoise as eq

N, K = 40, 8


@pytest.fixture(scope="module")
def X():
    X = np.random.default_rng(0).standard_normal((N, 3))
    X[3] = X[4]  # duplicates: the smallest positive distance is that of another neighbour
    X[:6] *= 1e-4  # neighbours far closer than the others, so that σ has its lower bound
    return X


def union(W):
    return W + W.T - W * W.T


def memberships(X):
    """Return μ, with σ_i from a bracketing solver."""
    D, W = cdist(X, X), np.zeros((N, N))
    for i in range(N):
        others = np.array([j for j in np.argsort(D[i], kind="stable") if j != i])[: K - 1]
        d = D[i, others]
        excess = np.maximum(d - d[d > 0].min(), 0)
        log_sigma = brentq(lambda t, x=excess: np.exp(-x / np.exp(t)).sum() - np.log2(K), -30, 30)
        W[i, others] = np.exp(-excess / max(np.exp(log_sigma), 1e-3 * d.mean()))
    return union(W)


def test_memberships_match_their_definition(X):
    mu = eq.UMAP(n_neighbors=K, engine="reference").problem(X).affinities.toarray()
    assert_allclose(mu, memberships(X), atol=1e-7)


@pytest.mark.parametrize("t", [0.0, 0.3])
def test_labels_weaken_edges_between_classes(X, t):
    labels = np.random.default_rng(1).integers(-1, 3, N)
    factor = np.where(labels[:, None] == labels, 1.0, np.exp(-2.5 / (1 - t)))
    factor[(labels[:, None] < 0) | (labels < 0)] = np.exp(-1)
    W = memberships(X) * factor
    stated = union(W / W.max(axis=1, keepdims=True))
    mu = eq.UMAP(n_neighbors=K, engine="reference", target_weight=t).problem(X, labels).affinities.toarray()
    assert_allclose(mu, stated, atol=1e-7)

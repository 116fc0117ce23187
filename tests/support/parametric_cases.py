"""Data and small encoders for the Parametric tests."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_blobs

import equipoise as eq

X, LABELS = make_blobs(80, 6, centers=4, cluster_std=3.0, random_state=0)
METHODS = {
    "SNE": eq.SNE(perplexity=8),
    "SymmetricSNE": eq.SymmetricSNE(perplexity=8),
    "TSNE": eq.TSNE(perplexity=8),
    "TSNE, sparse": eq.TSNE(perplexity=8, engine="grid"),
    "TSNE by PyTorch": eq.TSNE(perplexity=8, engine="torch", device="cpu"),
    "UMAP by PyTorch": eq.UMAP(n_neighbors=8, engine="torch", device="cpu"),
    "TSNE under g": eq.TSNE(perplexity=8, g=np.array([[2.0, 0.5], [0.5, 1.0]])),
    "PowerSNE": eq.PowerSNE(perplexity=8),
    "GSNE": eq.GSNE(perplexity=8),
    "GSNE, β < 2": eq.GSNE(perplexity=8, beta=1.2, eta=0.5, alpha=0.3),
    "GSNE, near KL": eq.GSNE(perplexity=8, alpha=-0.95),
    "SphericalSNE": eq.SphericalSNE(perplexity=8),
    "UMAP": eq.UMAP(n_neighbors=8),
    "UMAP, intended": eq.UMAP(n_neighbors=8, loss="intended"),
}


def small(method=None, **parameters):
    """Return a Parametric with a few short epochs."""
    settings = {"epochs": 6, "batch_size": 32, "random_state": 0, "n_jobs": 1, "device": "cpu"}
    return eq.Parametric(method or eq.TSNE(perplexity=8), **{**settings, **parameters})

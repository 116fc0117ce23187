"""The methods, as scikit-learn estimators: each is a kernel, a divergence, affinities and a geometry."""

from __future__ import annotations

from .embedding import Embedding
from .neighbor_embedding import NeighborEmbedding
from .sne import GSNE, SNE, TSNE, PowerSNE, SphericalSNE, SymmetricSNE
from .umap import UMAP

METHODS: tuple[type[NeighborEmbedding], ...] = (SNE, SymmetricSNE, TSNE, PowerSNE, GSNE, SphericalSNE)  # the SNE family

__all__ = [
    "GSNE",
    "METHODS",
    "SNE",
    "TSNE",
    "UMAP",
    "Embedding",
    "NeighborEmbedding",
    "PowerSNE",
    "SphericalSNE",
    "SymmetricSNE",
]

"""The methods, as scikit-learn estimators: each is a kernel, a divergence, affinities and a geometry."""

from __future__ import annotations

from .embedding import Embedding
from .neighbor_embedding import NeighborEmbedding
from .sne import GSNE, SNE, TSNE, PowerSNE, SphericalSNE, SymmetricSNE

METHODS: tuple[type[NeighborEmbedding], ...] = (SNE, SymmetricSNE, TSNE, PowerSNE, GSNE, SphericalSNE)

__all__ = [
    "GSNE",
    "METHODS",
    "SNE",
    "TSNE",
    "Embedding",
    "NeighborEmbedding",
    "PowerSNE",
    "SphericalSNE",
    "SymmetricSNE",
]

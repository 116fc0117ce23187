"""The methods, as scikit-learn estimators: each is a kernel, a divergence, affinities and a geometry."""

from __future__ import annotations

from .base import NeighborEmbedding
from .mds import MDS
from .sne import GSNE, SNE, TSNE, PowerSNE, SphericalSNE, SymmetricSNE

METHODS: tuple[type[NeighborEmbedding], ...] = (SNE, SymmetricSNE, TSNE, PowerSNE, GSNE, SphericalSNE)

__all__ = ["GSNE", "MDS", "METHODS", "SNE", "TSNE", "NeighborEmbedding", "PowerSNE", "SphericalSNE", "SymmetricSNE"]

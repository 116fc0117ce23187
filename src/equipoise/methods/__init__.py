"""The methods, as scikit-learn estimators: each is a kernel, a divergence, affinities and a geometry."""

from __future__ import annotations

from .base import NeighborEmbedding
from .classical import ClassicalEmbedding
from .local import LLE, LaplacianEigenmaps
from .mds import MDS
from .scaling import PCA, ClassicalMDS, Isomap
from .sne import GSNE, SNE, TSNE, PowerSNE, SphericalSNE, SymmetricSNE

METHODS: tuple[type[NeighborEmbedding], ...] = (SNE, SymmetricSNE, TSNE, PowerSNE, GSNE, SphericalSNE)
CLASSICAL: tuple[type[ClassicalEmbedding], ...] = (PCA, ClassicalMDS, Isomap, LLE, LaplacianEigenmaps)

__all__ = [
    "CLASSICAL",
    "GSNE",
    "LLE",
    "MDS",
    "METHODS",
    "PCA",
    "SNE",
    "TSNE",
    "ClassicalEmbedding",
    "ClassicalMDS",
    "Isomap",
    "LaplacianEigenmaps",
    "NeighborEmbedding",
    "PowerSNE",
    "SphericalSNE",
    "SymmetricSNE",
]

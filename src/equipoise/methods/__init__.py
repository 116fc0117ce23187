"""The embedding methods: one class per method, with the interface of a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from .closed_form import ClassicalEmbedding
from .double import DKLLE, DKPCA
from .embedding import Embedding
from .learned_metric import LearnedMetric
from .local import LLE, LaplacianEigenmaps
from .mds import MDS
from .pair_embedding import PairEmbedding
from .parametric.parametric import Parametric
from .scaling import PCA, ClassicalMDS, Isomap
from .sne import GSNE, SNE, TSNE, NeighborEmbedding, PowerSNE, SphericalSNE, SymmetricSNE
from .umap import UMAP

METHODS: tuple[type[NeighborEmbedding], ...] = (SNE, SymmetricSNE, TSNE, PowerSNE, GSNE, SphericalSNE)  # the SNE family
CLASSICAL: tuple[type[ClassicalEmbedding], ...] = (PCA, ClassicalMDS, Isomap, LLE, LaplacianEigenmaps)
ALL: tuple[type[Any], ...] = (*METHODS, UMAP, DKLLE, DKPCA, PairEmbedding, *CLASSICAL, MDS)

__all__ = [
    "ALL",
    "CLASSICAL",
    "DKLLE",
    "DKPCA",
    "GSNE",
    "LLE",
    "MDS",
    "METHODS",
    "PCA",
    "SNE",
    "TSNE",
    "UMAP",
    "ClassicalEmbedding",
    "ClassicalMDS",
    "Embedding",
    "Isomap",
    "LaplacianEigenmaps",
    "LearnedMetric",
    "NeighborEmbedding",
    "PairEmbedding",
    "Parametric",
    "PowerSNE",
    "SphericalSNE",
    "SymmetricSNE",
]

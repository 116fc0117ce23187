"""The embedding methods: one class per method, with the interface of a scikit-learn estimator."""

from __future__ import annotations

from .closed_form import ClassicalEmbedding
from .double import DKLLE, DKPCA
from .embedding import Embedding
from .families import ALL, CLASSICAL, METHODS
from .learned_metric import LearnedMetric
from .local import LLE, LaplacianEigenmaps
from .mds import MDS
from .pair_embedding import PairEmbedding
from .parametric.parametric import Parametric
from .scaling import PCA, ClassicalMDS, Isomap
from .sne import GSNE, SNE, TSNE, NeighborEmbedding, PowerSNE, SphericalSNE, SymmetricSNE
from .umap import UMAP

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

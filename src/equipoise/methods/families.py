"""The methods by family: tables over which tests, pages and the command line run."""

from __future__ import annotations

from typing import Any

from .closed_form import ClassicalEmbedding
from .double import DKLLE, DKPCA
from .local import LLE, LaplacianEigenmaps
from .mds import MDS
from .pair_embedding import PairEmbedding
from .scaling import PCA, ClassicalMDS, Isomap
from .sne import GSNE, SNE, TSNE, NeighborEmbedding, PowerSNE, SphericalSNE, SymmetricSNE
from .umap import UMAP

METHODS: tuple[type[NeighborEmbedding], ...] = (SNE, SymmetricSNE, TSNE, PowerSNE, GSNE, SphericalSNE)  # the SNE family
CLASSICAL: tuple[type[ClassicalEmbedding], ...] = (PCA, ClassicalMDS, Isomap, LLE, LaplacianEigenmaps)
ALL: tuple[type[Any], ...] = (*METHODS, UMAP, DKLLE, DKPCA, PairEmbedding, *CLASSICAL, MDS)

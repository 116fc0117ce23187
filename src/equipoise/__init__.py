"""Neighbour embedding and manifold learning as a balance of attraction and repulsion."""

from __future__ import annotations

from . import anndata, divergences, geometry, kernels, neighbors, spaces
from ._version import __version__
from .canonical import canonical_form
from .evaluate import compare, evaluate
from .evaluate.stability import stability
from .evaluate.sweep import sweep
from .force_laws import forces, similarities
from .memory import estimate_memory
from .methods import (
    DKLLE,
    DKPCA,
    GSNE,
    LLE,
    MDS,
    PCA,
    SNE,
    TSNE,
    UMAP,
    ClassicalMDS,
    Embedding,
    Isomap,
    LaplacianEigenmaps,
    NeighborEmbedding,
    Parametric,
    PowerSNE,
    SphericalSNE,
    SymmetricSNE,
)
from .optimize.rules import Accelerated, GradientDescent, Momentum
from .problems.forces import Problem
from .problems.own_loss import LossProblem
from .problems.stress import StressProblem
from .saving.checkpoint import Checkpoint
from .store import load, save
from .views.page import page
from .views.plot import plot

__all__ = [
    "DKLLE",
    "DKPCA",
    "GSNE",
    "LLE",
    "MDS",
    "PCA",
    "SNE",
    "TSNE",
    "UMAP",
    "Accelerated",
    "Checkpoint",
    "ClassicalMDS",
    "Embedding",
    "GradientDescent",
    "Isomap",
    "LaplacianEigenmaps",
    "LossProblem",
    "Momentum",
    "NeighborEmbedding",
    "Parametric",
    "PowerSNE",
    "Problem",
    "SphericalSNE",
    "StressProblem",
    "SymmetricSNE",
    "__version__",
    "anndata",
    "canonical_form",
    "compare",
    "divergences",
    "estimate_memory",
    "evaluate",
    "forces",
    "geometry",
    "kernels",
    "load",
    "neighbors",
    "page",
    "plot",
    "save",
    "similarities",
    "spaces",
    "stability",
    "sweep",
]

"""Equipoise: neighbour embedding and manifold learning as a balance of attraction and repulsion."""

from __future__ import annotations

from . import anndata, divergences, kernels, neighbors, spaces
from .canonical import canonical_form
from .checkpoint import Checkpoint
from .evaluate import compare, evaluate
from .evaluate.stability import stability
from .evaluate.sweep import sweep
from .force_laws import forces
from .loss_problem import LossProblem
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
from .optimize import Accelerated, GradientDescent, Momentum
from .problem import Problem
from .store import load, save
from .stress_problem import StressProblem
from .views.page import page
from .views.plot import plot

__version__ = "0.1.0"

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
    "anndata",
    "canonical_form",
    "compare",
    "divergences",
    "estimate_memory",
    "evaluate",
    "forces",
    "kernels",
    "load",
    "neighbors",
    "page",
    "plot",
    "save",
    "spaces",
    "stability",
    "sweep",
]

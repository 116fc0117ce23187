"""Neighbour embedding and manifold learning as a balance of attraction and repulsion."""

from __future__ import annotations

from . import affinities, anndata, distributed, divergences, geometry, kernels, neighbors, pair_losses, spaces
from ._version import __version__
from ._warn import UnfinishedWarning
from .canonical import canonical_form
from .evaluate import axis_loadings, compare, evaluate, local_isometry
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
    LearnedMetric,
    NeighborEmbedding,
    PairEmbedding,
    Parametric,
    PowerSNE,
    SphericalSNE,
    SymmetricSNE,
)
from .mixed import Blocks, Mixed
from .optimize.dynamics import Dynamics
from .optimize.rules import Accelerated, GradientDescent, Momentum
from .pair_losses import PairLoss
from .problems.forces import Problem
from .problems.own_loss import LossProblem
from .problems.stress import StressProblem
from .saving.checkpoint import Checkpoint
from .store import load, save
from .views.grid import grid_layout
from .views.notebook.widget import widget
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
    "Blocks",
    "Checkpoint",
    "ClassicalMDS",
    "Dynamics",
    "Embedding",
    "GradientDescent",
    "Isomap",
    "LaplacianEigenmaps",
    "LearnedMetric",
    "LossProblem",
    "Mixed",
    "Momentum",
    "NeighborEmbedding",
    "PairEmbedding",
    "PairLoss",
    "Parametric",
    "PowerSNE",
    "Problem",
    "SphericalSNE",
    "StressProblem",
    "SymmetricSNE",
    "UnfinishedWarning",
    "__version__",
    "affinities",
    "anndata",
    "axis_loadings",
    "canonical_form",
    "compare",
    "distributed",
    "divergences",
    "estimate_memory",
    "evaluate",
    "forces",
    "geometry",
    "grid_layout",
    "kernels",
    "load",
    "local_isometry",
    "neighbors",
    "page",
    "pair_losses",
    "plot",
    "save",
    "similarities",
    "spaces",
    "stability",
    "sweep",
    "widget",
]

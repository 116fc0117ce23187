"""Equipoise: neighbour embedding and manifold learning as a balance of attraction and repulsion."""

from __future__ import annotations

from . import divergences, kernels, neighbors, spaces
from .force_laws import forces
from .memory import estimate_memory
from .methods import (
    GSNE,
    LLE,
    PCA,
    SNE,
    TSNE,
    ClassicalMDS,
    Isomap,
    LaplacianEigenmaps,
    NeighborEmbedding,
    PowerSNE,
    SphericalSNE,
    SymmetricSNE,
)
from .optimize import Accelerated, GradientDescent, Momentum
from .problem import Problem

__version__ = "0.1.0"

__all__ = [
    "GSNE",
    "LLE",
    "PCA",
    "SNE",
    "TSNE",
    "Accelerated",
    "ClassicalMDS",
    "GradientDescent",
    "Isomap",
    "LaplacianEigenmaps",
    "Momentum",
    "NeighborEmbedding",
    "PowerSNE",
    "Problem",
    "SphericalSNE",
    "SymmetricSNE",
    "divergences",
    "estimate_memory",
    "forces",
    "kernels",
    "neighbors",
    "spaces",
]

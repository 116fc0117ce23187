"""Equipoise: neighbour embedding and manifold learning as a balance of attraction and repulsion."""

from __future__ import annotations

from . import divergences, kernels, neighbors
from .force_laws import forces
from .memory import estimate_memory
from .methods import GSNE, SNE, TSNE, UMAP, Embedding, NeighborEmbedding, PowerSNE, SphericalSNE, SymmetricSNE
from .optimize import GradientDescent, Momentum
from .problem import Problem

__version__ = "0.1.0"

__all__ = [
    "GSNE",
    "SNE",
    "TSNE",
    "UMAP",
    "Embedding",
    "GradientDescent",
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
]

"""Metric spaces: sets of points with a distance between any two of them (Rodolà, "Metric spaces").

Every space has a number of points `n`, and computes distances by `distances(i, j)` and `matrix()`; see `MetricSpace`.
"""

from __future__ import annotations

from .axioms import MetricReport, Violation, check_metric
from .base import MetricSpace
from .derived import LogCompressed, Product, Restriction
from .distortion import Distortion, Spread, dilation, distortion, is_isometry, summarize_distortion
from .embeddability import Embeddability, embeddability
from .farthest import farthest_points
from .graph_geodesic import GraphGeodesic
from .gromov_wasserstein import GromovWasserstein, gromov_wasserstein
from .isolines import GraphIsolines, Isolines, isolines
from .isometry import Isometry, is_isometric
from .parallel_transport import ParallelTransport
from .simple import Discrete, Euclidean, PNorm, Precomputed, Sphere, as_space
from .surface_geodesic import MeshGeodesic

__all__ = [
    "Discrete",
    "Distortion",
    "Embeddability",
    "Euclidean",
    "GraphGeodesic",
    "GraphIsolines",
    "GromovWasserstein",
    "Isolines",
    "Isometry",
    "LogCompressed",
    "MeshGeodesic",
    "MetricReport",
    "MetricSpace",
    "PNorm",
    "ParallelTransport",
    "Precomputed",
    "Product",
    "Restriction",
    "Sphere",
    "Spread",
    "Violation",
    "as_space",
    "check_metric",
    "dilation",
    "distortion",
    "embeddability",
    "farthest_points",
    "gromov_wasserstein",
    "is_isometric",
    "is_isometry",
    "isolines",
    "summarize_distortion",
]

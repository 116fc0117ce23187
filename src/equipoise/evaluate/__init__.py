"""Measure how faithfully a map represents its data."""

from __future__ import annotations

from .axis_loadings import AxisLoadings, axis_loadings
from .classes import davies_bouldin, davies_bouldin_curve, knn_accuracy, one_nn_error, silhouette
from .compare import Comparison, compare
from .distances import LowestStress, Shepard, Stress, distortions, lowest_stress, shepard, stress
from .local_isometry import LocalIsometry, local_isometry
from .losses import loss
from .measured import DaviesBouldinCurve, Measured, RecallCurve
from .neighborhood import continuity, neighbor_recall, preservation_ratio, recall_curve, trustworthiness
from .ranks import Neighborhoods
from .reading import Reading
from .report import Report, evaluate
from .stability import Stability, stability
from .structure import centroid_correlation, triplet_accuracy
from .sweep import Sweep, sweep

__all__ = [
    "AxisLoadings",
    "Comparison",
    "DaviesBouldinCurve",
    "LocalIsometry",
    "LowestStress",
    "Measured",
    "Neighborhoods",
    "Reading",
    "RecallCurve",
    "Report",
    "Shepard",
    "Stability",
    "Stress",
    "Sweep",
    "axis_loadings",
    "centroid_correlation",
    "compare",
    "continuity",
    "davies_bouldin",
    "davies_bouldin_curve",
    "distortions",
    "evaluate",
    "knn_accuracy",
    "local_isometry",
    "loss",
    "lowest_stress",
    "neighbor_recall",
    "one_nn_error",
    "preservation_ratio",
    "recall_curve",
    "shepard",
    "silhouette",
    "stability",
    "stress",
    "sweep",
    "triplet_accuracy",
    "trustworthiness",
]

"""Stress on a device of PyTorch."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import squareform

from .._types import Matrix
from ..data.checks.dissimilarities import check_size
from ..inputs import Input
from ..objectives.stress.metric import Stress
from .mds_pairs import condensed_weights
from .on_device import on_device


def stress_on(device: str, source: Input, W: Matrix | None, most: int, n_threads: int) -> Stress:
    """Return the loss over all pairs on a device, with dense weights or none.

    The Euclidean distances of a table are stored there for up to `most` points, and beyond computed at every pass.
    """
    from ..objectives.stress.torch_stress import DeviceStress, Recomputed, Stored

    if source.points is not None:
        points = Recomputed(on_device(source.points, device))
        weights = None if W is None else on_device(W - np.diag(W.diagonal()), device).float()
        return DeviceStress(points.stored() if source.n <= most else points, weights)
    delta = source.condensed(np.float32, n_threads)
    w = condensed_weights(delta, W)
    check_size(float(delta.max(initial=0.0)))
    weights = on_device(squareform(w), device) if len(w) else None
    return DeviceStress(Stored(on_device(squareform(delta), device)), weights)

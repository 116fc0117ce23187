"""Placing new points in a finished map of scaling: each by itself, where its own stress is least."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _core
from .._types import Array

STEPS = 100  # chosen, not tuned
RELAXATION = 1.5  # times the majorising step; below 2 the stress still falls, as the majoriser is a parabola
BLOCK = 2**22  # distances held at once


def place_by_stress(delta: Callable[[slice], Array], m: int, T: Array, n_threads: int) -> Array:
    """Return the places (m, d) of new points; `delta` gives their distances (rows, k) to the points at T (k, d).

    A point starts at the place of the nearest and takes steps y ← y − 1.5 G/k, G half the gradient of its stress. Its
    place does not depend on the others.
    """
    T = np.ascontiguousarray(T, dtype=np.float32)
    k, d = T.shape
    Y = np.empty((m, d), np.float32)
    weights, unused = np.ones(k, np.float32), np.empty(T.shape)
    step = max(1, BLOCK // k)
    for start in range(0, m, step):
        rows = slice(start, min(start + step, m))
        distances = np.ascontiguousarray(delta(rows), dtype=np.float32)
        nearest = distances.argmin(axis=1)
        places = T[nearest].astype(np.float64)
        G = np.empty(places.shape)
        for _ in range(STEPS):
            _core.stress_between(distances, weights, places.astype(np.float32), T, G, unused, n_threads)
            places -= RELAXATION / k * G
        twin = distances[np.arange(len(distances)), nearest] == 0
        places[twin] = T[nearest[twin]]
        Y[rows] = places
    return Y

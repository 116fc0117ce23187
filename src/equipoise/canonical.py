"""Canonical forms: a surface in the shape that its own distances give it, whatever its pose (docs/math.md, 14)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ._types import Array
from .initialize import one_blas_thread
from .methods import MDS
from .spaces import MeshGeodesic, farthest_points

BLOCK = 2**20  # pairs of a vertex and a landmark at once, 8 MB
STEPS = 100  # of majorisation for a vertex between landmarks, at most
SETTLED = 1e-4  # of the extent of the landmarks: a step shorter than this is the last


def canonical_form(
    vertices: Any,
    faces: Any,
    *,
    n_landmarks: int = 500,
    method: str = "heat",
    random_state: Any = 0,
    n_threads: int = 1,
) -> Array:
    """Return the vertices (n, 3) where straight distances come nearest to the geodesic ones, min Σ_{i<j} (d − d_g)².

    Near-isometric poses of one shape have nearly the same canonical form, up to a rotation, a reflection and a shift
    (Elad & Kimmel 2003). Of more than `n_landmarks` vertices, a farthest-point sample of that many is placed by `MDS`,
    and each of the others by the same stress against the landmarks alone. `method` is that of `spaces.MeshGeodesic`.
    """
    space = MeshGeodesic(vertices, faces, method, n_threads=n_threads)
    if n_landmarks < 4:
        raise ValueError(f"n_landmarks must be 4 or more, got {n_landmarks}: fewer span no solid")
    landmarks, D = farthest_points(space, min(n_landmarks, space.n), random_state)
    among = D[:, landmarks]
    among = (among + among.T) / 2  # the heat method differs a little with the direction
    Z = np.asarray(
        MDS(n_components=3, metric="precomputed", random_state=random_state).fit_transform(among), np.float64
    )
    Y = place_among(Z, D.T)
    Y[landmarks] = Z
    return Y


def place_among(Z: Array, D: Array) -> Array:
    """Return points (n, d) that each minimise Σ_l (‖y − z_l‖ − D_l)² against the fixed points Z (m, d); D is (n, m).

    Each starts at the mean of the d + 1 nearest z_l, weighted by 1/D, and takes steps of majorisation:
    y ← mean_l [z_l + D_l (y − z_l)/‖y − z_l‖].
    """
    (n, m), d = D.shape, Z.shape[1]
    Y = np.empty((n, d))
    short = SETTLED * float(np.ptp(Z, axis=0).max())
    step = max(1, BLOCK // m)
    for start in range(0, n, step):
        far = np.ascontiguousarray(D[start : start + step])
        near = np.argpartition(far, min(d, m - 1), axis=1)[:, : d + 1]
        weight = 1 / np.maximum(np.take_along_axis(far, near, axis=1), short)
        y = np.einsum("nk,nkd->nd", weight / weight.sum(axis=1, keepdims=True), Z[near])
        with one_blas_thread():
            for _ in range(STEPS):
                r = cdist(y, Z)
                pull = np.divide(far, r, out=r, where=r > 0)
                before, y = y, Z.mean(axis=0) + (pull.sum(axis=1, keepdims=True) * y - pull @ Z) / m
                if np.linalg.norm(y - before, axis=1).max() < short:
                    break
        Y[start : start + step] = y
    return Y

"""Compute canonical forms: embeddings of surfaces that do not depend on the pose (docs/math.md, section 18)."""

from __future__ import annotations

from typing import Any

from ._types import Array
from .arrays.namespace import is_integer
from .methods import MDS
from .methods.estimator import threads
from .optimize.placement import place_by_stress
from .spaces import MeshGeodesic, Precomputed, farthest_points


def canonical_form(
    vertices: Any,
    faces: Any,
    *,
    n_landmarks: int = 500,
    method: str = "heat",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Array:
    """Return the canonical form of a surface: points whose Euclidean distances d approximate geodesic distances d_g.

    The points minimise Σ_{i<j} (d − d_g)². Nearly isometric poses of a shape have nearly the same canonical form, up to
    translation, rotation and reflection (Elad & Kimmel 2003). The result is an approximation for a surface with more
    than `n_landmarks` vertices: `MDS` embeds a farthest-point sample of the vertices, and each remaining vertex is
    placed where its own sum of (d − d_g)², over the vertices of the sample, is minimal.

    Parameters
    ----------
    vertices : array-like of shape (n, 3)
        Coordinates of the vertices.
    faces : array-like of int, shape (m, 3)
        Vertex indices of each triangle.
    n_landmarks : int, default=500
        Number of vertices in the sample, at least 4.
    method : str, default="heat"
        How geodesics are computed, as in `spaces.MeshGeodesic`.
    random_state : int or RandomState, default=0
        Seed of the sample and of MDS.
    n_jobs : int, optional
        Number of threads; by default all cores, or OMP_NUM_THREADS if that is fewer.

    Returns
    -------
    Y : ndarray of float32, shape (n, 3)
    """
    if not (is_integer(n_landmarks) and n_landmarks >= 4):
        raise ValueError(
            f"n_landmarks must be an integer >= 4, because three dimensions need four points; got {n_landmarks!r}"
        )
    n_threads = threads(n_jobs)
    space = MeshGeodesic(vertices, faces, method, n_threads=n_threads)
    landmarks, D = farthest_points(space, min(n_landmarks, space.n), random_state)
    between = D[:, landmarks]
    between = (between + between.T) / 2  # the heat method is not exactly symmetric
    Z = MDS(n_components=3, random_state=random_state, n_jobs=n_jobs).fit_transform(Precomputed(between))
    return place_by_stress(lambda rows: D[:, rows].T, space.n, Z, n_threads)

"""Canonical forms: a surface in the shape that its own distances give it, whatever its pose (docs/math.md, 18)."""

from __future__ import annotations

from typing import Any

from ._types import Array
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
    """Return the vertices (n, 3) where straight distances come nearest to the geodesic ones, min Σ_{i<j} (d − d_g)².

    Near-isometric poses of one shape have nearly the same canonical form, up to a shift, a rotation and a reflection
    (Elad & Kimmel 2003). Of more than `n_landmarks` vertices, a farthest-point sample of that many is placed by `MDS`,
    and each of the others by its own stress against the sample. `method` is that of `spaces.MeshGeodesic`.
    """
    if n_landmarks < 4:
        raise ValueError(f"n_landmarks must be 4 or more, got {n_landmarks}: fewer span no solid")
    n_threads = threads(n_jobs)
    space = MeshGeodesic(vertices, faces, method, n_threads=n_threads)
    landmarks, D = farthest_points(space, min(n_landmarks, space.n), random_state)
    among = D[:, landmarks]
    among = (among + among.T) / 2  # the heat method differs a little with the direction
    Z = MDS(n_components=3, random_state=random_state, n_jobs=n_jobs).fit_transform(Precomputed(among))
    return place_by_stress(lambda rows: D[:, rows].T, space.n, Z, n_threads)

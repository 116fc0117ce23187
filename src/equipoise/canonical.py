"""Compute canonical forms, embeddings of surfaces without their pose, and compare them (docs/math.md, section 18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ._plural import plural
from ._types import Array
from .arrays.namespace import is_integer
from .data import check_table
from .linalg.pca import on_one_blas_thread
from .methods import MDS
from .methods.estimator import threads
from .optimize.placement import place_by_stress
from .spaces import Euclidean, MeshGeodesic, Precomputed, farthest_points, gromov_wasserstein

ICP_STEPS = 30  # alternations of matching and alignment from each start; chosen


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
    Z, D = _landmark_form(vertices, faces, _Settings(n_landmarks, method, random_state, n_jobs))
    return place_by_stress(lambda rows: D[:, rows].T, D.shape[1], Z, threads(n_jobs))


@dataclass(frozen=True)
class _Settings:
    """How canonical forms are computed; the parameters of `canonical_form`."""

    n_landmarks: int
    method: str
    random_state: Any
    n_jobs: int | None

    def __post_init__(self) -> None:
        if not (is_integer(self.n_landmarks) and self.n_landmarks >= 4):
            raise ValueError(
                "n_landmarks must be an integer >= 4, because three dimensions need four points; got"
                f" {self.n_landmarks!r}"
            )


def _landmark_form(vertices: Any, faces: Any, settings: _Settings) -> tuple[Array, Array]:
    """Return the canonical form (m, 3) of a farthest-point sample of m vertices, and their distances (m, n) to all."""
    space = MeshGeodesic(vertices, faces, settings.method, n_threads=threads(settings.n_jobs))
    landmarks, D = farthest_points(space, min(settings.n_landmarks, space.n), settings.random_state)
    between = D[:, landmarks]
    between = (between + between.T) / 2  # the heat method is not exactly symmetric
    method = MDS(n_components=3, random_state=settings.random_state, n_jobs=settings.n_jobs)
    return method.fit_transform(Precomputed(between)), D


def distance_matrix(
    shapes: Sequence[tuple[Any, Any]],
    *,
    compare: str = "gw",
    n_landmarks: int = 100,
    method: str = "heat",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Array:
    """Return the distances between surfaces, measured between their canonical forms: nearly 0 for poses of one shape.

    Each surface is represented by the canonical form of a farthest-point sample. The forms are compared without a
    given correspondence of their points, as in `cloud_distances`.

    Parameters
    ----------
    shapes : sequence of (vertices, faces)
        The surfaces, each as in `canonical_form`.
    compare : {"gw", "icp"}, default="gw"
        How two forms are compared, as in `cloud_distances`.
    n_landmarks : int, default=100
        Number of vertices of each sample, at least 4.
    method : str, default="heat"
        How geodesics are computed, as in `spaces.MeshGeodesic`.
    random_state : int or RandomState, default=0
        Seed of the samples and of MDS.
    n_jobs : int, optional
        Number of threads; by default all cores, or OMP_NUM_THREADS if that is fewer.

    Returns
    -------
    distances : ndarray of shape (len(shapes), len(shapes))
    """
    settings = _Settings(n_landmarks, method, random_state, n_jobs)
    _check_compare(compare)
    _require_several(len(shapes), "shapes")
    forms = []
    for s, shape in enumerate(shapes):
        try:
            vertices, faces = shape
        except (TypeError, ValueError):
            raise ValueError(
                f"shape {s} must be a pair (vertices, faces), got {type(shape).__name__}; for point clouds use"
                " cloud_distances"
            ) from None
        forms.append(_landmark_form(vertices, faces, settings)[0])
    return cloud_distances(forms, compare=compare, n_points=n_landmarks, random_state=random_state)


def cloud_distances(clouds: Sequence[Any], *, compare: str = "gw", n_points: int = 100, random_state: Any = 0) -> Array:
    """Return the distances between point clouds, up to translation, rotation, reflection and scale.

    Clouds are scaled to a root mean square distance 1 from their centroids. No correspondence of points is needed.

    Parameters
    ----------
    clouds : sequence of array-like, shape (n_i, d)
        The clouds, all in d dimensions.
    compare : {"gw", "icp"}, default="gw"
        "gw" is `spaces.gromov_wasserstein`. "icp" superimposes two clouds by matching nearest points and aligning the
        matches in turn (Besl & McKay 1992), from all assignments of principal axes; the distance is the root mean
        square distance to the nearest point of the other cloud.
    n_points : int, default=100
        Larger clouds are represented by a farthest-point sample of this size.
    random_state : int or RandomState, default=0
        Seed of the samples.

    Returns
    -------
    distances : ndarray of shape (len(clouds), len(clouds))
    """
    _check_compare(compare)
    _require_several(len(clouds), "clouds")
    if not (is_integer(n_points) and n_points >= 2):
        raise ValueError(f"n_points must be an integer >= 2, got {n_points!r}")
    samples = [_normalized_sample(cloud, f"cloud {s}", n_points, random_state) for s, cloud in enumerate(clouds)]
    widths = [sample.shape[1] for sample in samples]
    if len(set(widths)) > 1:
        raise ValueError(f"clouds must have the same number of dimensions, got {sorted(set(widths))}")
    distances = np.zeros((len(samples), len(samples)))
    for s, t in combinations(range(len(samples)), 2):
        P, Q = samples[s], samples[t]
        apart = _icp(P, Q) if compare == "icp" else float(gromov_wasserstein(Euclidean(P), Euclidean(Q)))
        distances[s, t] = distances[t, s] = apart
    return distances


@dataclass(frozen=True)
class Retrieval:
    """How often the shapes most similar to a shape have its label.

    Attributes
    ----------
    accuracy : float
        Fraction of the shapes whose nearest other shape has the same label.
    first_tier : float
        Mean over the shapes of the fraction of the c − 1 nearest others that have the same label, c being the number
        of shapes with that label.
    nearest : ndarray of int, shape (n,)
        The nearest other shape of each shape.
    """

    accuracy: float
    first_tier: float
    nearest: Array = field(repr=False)


def retrieve(distances: Any, labels: Any) -> Retrieval:
    """Measure retrieval by a matrix of distances: each shape in turn is the query, the others are ranked.

    Parameters
    ----------
    distances : array-like of shape (n, n)
        For example from `distance_matrix`.
    labels : sequence of length n
        The kind of each shape; every kind must occur at least twice.

    Returns
    -------
    Retrieval
    """
    D = Precomputed(distances).D.astype(np.float64)
    names, kinds, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    if kinds.shape != (len(D),):
        raise ValueError(f"labels must have one entry for each of the {len(D)} shapes, got shape {kinds.shape}")
    if counts.min() < 2:
        raise ValueError(
            f"the label {names[counts.argmin()].item()!r} occurs once, so no other shape can match it; leave it out"
        )
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")[:, :-1]
    same = kinds[order] == kinds[:, None]
    tiers = [row[: counts[kind] - 1].mean() for row, kind in zip(same, kinds, strict=True)]
    return Retrieval(float(same[:, 0].mean()), float(np.mean(tiers)), order[:, 0])


def _check_compare(compare: Any) -> None:
    if not (isinstance(compare, str) and compare in ("icp", "gw")):
        raise ValueError(f'compare must be "icp" or "gw", got {compare!r}')


def _require_several(count: int, name: str) -> None:
    if count < 2:
        raise ValueError(f"{name} has {plural(count, 'entry', 'entries')}; at least 2 are needed to compare them")


def _normalized_sample(cloud: Any, name: str, n_points: int, random_state: Any) -> Array:
    """Return a farthest-point sample of a cloud with centroid 0 and root mean square distance 1 from it."""
    cloud = check_table(cloud).astype(np.float64)
    if len(cloud) > n_points:
        cloud = cloud[farthest_points(Euclidean(cloud), n_points, random_state)[0]]
    cloud = cloud - cloud.mean(axis=0)
    radius = float(np.sqrt(np.square(cloud).sum(axis=1).mean()))
    if not radius > 0:
        raise ValueError(f"all points of {name} are at the same position, so it has no shape; leave it out")
    return np.asarray(cloud / radius)


@on_one_blas_thread
def _icp(P: Array, Q: Array) -> float:
    """Return the root mean square distance of two clouds (m, d) and (k, d) after the best rigid motion found."""
    d = P.shape[1]
    axes_p, axes_q = (np.linalg.svd(cloud, full_matrices=True)[2].T for cloud in (P, Q))
    best = np.inf
    for order in permutations(range(d)):
        for signs in product((1.0, -1.0), repeat=d):
            best = min(best, _icp_from(P @ (axes_p[:, order] * signs) @ axes_q.T, Q))
    return best


def _icp_from(P: Array, Q: Array) -> float:
    """Return the root mean square distance to the nearest point after ICP in both directions, from P as it is."""
    apart = np.inf
    for _ in range(ICP_STEPS):
        d2 = cdist(P, Q, "sqeuclidean")
        to_q, to_p = d2.argmin(axis=1), d2.argmin(axis=0)
        before, apart = apart, float(np.sqrt((d2.min(axis=1).mean() + d2.min(axis=0).mean()) / 2))
        if before - apart <= 1e-6 * apart:
            break
        weights = np.repeat([1 / len(P), 1 / len(Q)], [len(P), len(Q)])
        source, target = np.vstack([P, P[to_p]]), np.vstack([Q[to_q], Q])
        a, b = (weights @ points / 2 for points in (source, target))
        U, _, Vt = np.linalg.svd(((source - a) * weights[:, None]).T @ (target - b))
        P = (P - a) @ U @ Vt + b
    return apart

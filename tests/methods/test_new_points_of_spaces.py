"""New points of every kind of metric space: each method places them as it places distances to the fitted points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from support.methods import brief, over
from support.surfaces import torus

import equipoise as eq
from equipoise import spaces
from equipoise.methods import ALL

N, M = 48, 5
rng = np.random.default_rng(0)
U = rng.standard_normal((N + M, 3))
U /= np.linalg.norm(U, axis=1)[:, None]
A, B = rng.standard_normal((N + M, 2)), rng.standard_normal((N + M, 1))
NEAR = cdist(U[N:], U[:N])
FIRST = np.argsort(NEAR, axis=1)[:, :4]
EDGES = FIRST, np.take_along_axis(NEAR, FIRST, axis=1)
VERTICES, FACES = torus(10, 6)
MESH = spaces.MeshGeodesic(VERTICES + 0.05 * rng.standard_normal(VERTICES.shape), FACES, "exact")  # no ties
ORDER = rng.permutation(MESH.n)


class City(spaces.MetricSpace):
    """A user-defined space with coordinates."""

    def __init__(self, X):
        self.X, self.n = X, len(X)

    def _block(self, i, j):
        return cdist(self.X[i], self.X[j], "cityblock")

    def _new_block(self, X, j):
        return cdist(X, self.X[j], "cityblock")


class Bare:
    """A metric space that is not derived from `MetricSpace`."""

    n = N

    def distances(self, i=None, j=None):
        i, j = (np.arange(N) if k is None else k for k in (i, j))
        return cdist(U[i], U[j])


SPACES = {
    "Euclidean": (spaces.Euclidean(U[:N]), U[N:]),
    "PNorm": (spaces.PNorm(U[:N], 3), U[N:]),
    "Sphere": (spaces.Sphere(2 * U[:N], 2.0), 2 * U[N:]),
    "Precomputed": (spaces.Precomputed(cdist(U[:N], U[:N])), NEAR),
    "graph": (spaces.GraphGeodesic.from_table(U[:N], 6), EDGES),
    "part of a mesh": (spaces.Restriction(MESH, ORDER[:N]), ORDER[N:]),
    "part of a sphere": (spaces.Restriction(spaces.Sphere(U[: N + 2]), np.arange(N)), U[N:]),
    "LogCompressed": (spaces.LogCompressed(City(U[:N])), U[N:]),
    "Product": (spaces.Product(spaces.Euclidean(A[:8]), spaces.Euclidean(B[:6])), (A[N:], B[N:])),
    "user-defined": (City(U[:N]), U[N:]),
    "bare": (Bare(), NEAR),
}
METHODS = [Method for Method in ALL if Method is not eq.PCA]  # PCA needs coordinates or a kernel


@pytest.mark.parametrize("name", SPACES)
@over(METHODS)
def test_new_points_are_placed_by_their_distances(Method, name):
    space, new = SPACES[name]
    to_fitted = space.distances_from(new) if hasattr(space, "distances_from") else new
    D = space.distances()
    found = brief(Method, n_iter=10).fit(space) if Method is not eq.MDS else brief(Method).fit(space)
    expected = found.__class__(**found.get_params()).set_params(metric="precomputed").fit((D + D.T) / 2)
    scale = np.abs(expected.embedding_).max()
    assert_allclose(found.embedding_, expected.embedding_, rtol=0, atol=1e-6 * scale)
    assert_allclose(found.transform(new), expected.transform(to_fitted), rtol=0, atol=1e-5 * scale)


@over([eq.TSNE, eq.ClassicalMDS, eq.MDS])
def test_fitted_points_as_new_points(Method):
    method = brief(Method).fit(spaces.Sphere(U))
    assert_allclose(method.transform(U[5:9]), method.embedding_[5:9], atol=1e-6)
    whole = spaces.Restriction(spaces.Sphere(U), np.arange(40))
    method = brief(Method).fit(whole)
    assert_allclose(method.transform([3, 9]), method.embedding_[[3, 9]], atol=1e-6)


@over([eq.Isomap, eq.ClassicalMDS])
def test_landmarks_of_a_sphere(Method):
    method = brief(Method, n_landmarks=20).fit(spaces.Sphere(U))
    assert_allclose(method.transform(U[:4]), method.embedding_[:4], atol=0.05 * np.abs(method.embedding_).max())


def test_positions_do_not_depend_on_the_other_new_points():
    method = brief(eq.TSNE).fit(spaces.Sphere(U[:N]))
    together = method.transform(U[N:])
    assert_array_equal(together, np.concatenate([method.transform(U[i : i + 1]) for i in range(N, N + M)]))


def test_new_points_of_a_graph_enter_by_their_edges():
    chain = spaces.GraphGeodesic(sparse.csr_matrix(np.diag([1.0, 2.0, 3.0], 1)))
    edges = sparse.csr_matrix(([0.5, 0.25, 1.0], ([0, 1, 1], [1, 0, 3])), shape=(2, 4))
    assert_allclose(chain.distances_from(edges), [[1.5, 0.5, 2.5, 5.5], [0.25, 1.25, 3.25, 1.0]])
    assert_allclose(chain.distances_from(np.ones((1, 4)), [2, 0]), [[1.0, 1.0]])
    with pytest.raises(ValueError, match="new point 1 has no edge to a point of the graph"):
        chain.distances_from(sparse.csr_matrix(([1.0], ([0], [1])), shape=(2, 4)))
    with pytest.raises(ValueError, match=r"a sparse matrix \(m, 4\) or neighbour lists.*got ndarray of shape \(2, 3\)"):
        chain.distances_from(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"neighbour lists \(indices, distances\) of shape \(m, k\)"):
        chain.distances_from(([1, 2], [0.5, 0.5]))


@pytest.mark.parametrize(
    ("space", "new", "message"),
    [
        (spaces.Sphere(U), 2 * U[:2], "row 0 of X has norm 2, so it is not on the sphere of radius 1; scale each row"),
        (spaces.Euclidean(U), U[:, :2], "X has 2 columns, but the points of the space have 3; pass new points as rows"),
        (spaces.Precomputed(cdist(U, U)), NEAR, r"X has shape \(5, 48\); expected distances \(m, 53\)"),
        (spaces.Discrete(N), sparse.csr_matrix(NEAR), "distances to only some of the 48 points of the space"),
        (SPACES["Product"][0], A, r"must be a tuple \(A, B\) of new points of its two spaces, got ndarray"),
        (SPACES["Product"][0], (A[:2], B[:3]), r"the tuple \(A, B\) contains 2 and 3 new points"),
        (SPACES["part of a mesh"][0], [3, 60], "X contains the index 60, but the indices of points run from 0 to 59"),
    ],
)
def test_invalid_new_points_raise(space, new, message):
    method = brief(eq.ClassicalMDS).fit(space)
    with pytest.raises(ValueError, match=message):
        method.transform(new)


def test_wrong_distances_of_a_user_defined_space_are_named():
    class Wrong(City):
        result = np.full((2, N), -1.0)

        def _new_block(self, X, j):
            return self.result[:, j]

    method = brief(eq.ClassicalMDS).fit(Wrong(U[:N]))
    with pytest.raises(ValueError, match=r"the distance from new point 0 to point 0 is -1\.0; distances must be"):
        method.transform(U[:2])
    with pytest.raises(ValueError, match=r"distances of shape \(2, 48\) from 3 new points to 48 fitted points"):
        method.transform(U[:3])
    with pytest.raises(ValueError, match="X contains no new points"):
        method.transform(U[:0])


def test_neighbours_of_many_points_need_little_memory(monkeypatch):
    """The distances of a space are requested in blocks, never all at once."""
    largest = 0

    class Counted(spaces.Sphere):
        def _block(self, i, j):
            nonlocal largest
            largest = max(largest, len(i) * len(j))
            return super()._block(i, j)

    monkeypatch.setattr("equipoise.inputs.base.FIXED_ENTRIES", 7 * len(U))
    brief(eq.TSNE, engine="grid", init="spectral").fit(Counted(U))
    assert largest <= 7 * len(U)

"""Methods fitted to metric spaces load with the same bytes, and place new points as before."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from support.methods import NEW, X, brief
from support.surfaces import torus

import equipoise as eq
from equipoise import spaces


def save_and_load(method, tmp_path):
    eq.save(method, tmp_path / "method.eqz")
    return eq.load(tmp_path / "method.eqz")


@pytest.mark.parametrize("Method", [eq.MDS, eq.ClassicalMDS, eq.LLE, eq.TSNE])
def test_metric_space_is_saved(Method, tmp_path):
    U, V = X[:10, :2], X[:6, 2:]
    method = brief(Method, n_neighbors=20).fit(
        spaces.Product(spaces.PNorm(U, 1), spaces.LogCompressed(spaces.Euclidean(V)))
    )
    loaded = save_and_load(method, tmp_path)
    assert loaded.embedding_.tobytes() == method.embedding_.tobytes()
    new = NEW[:, :2], NEW[:, 2:]
    assert loaded.transform(new).tobytes() == method.transform(new).tobytes()


def test_graphs_and_meshes_are_saved(tmp_path):
    V, F = torus(12, 7)
    for space, new in (
        (spaces.MeshGeodesic(V, F, "exact"), None),
        (spaces.GraphGeodesic.from_table(V, 6), sparse.csr_matrix(np.eye(2, len(V)) + np.eye(2, len(V), 1))),
    ):
        rest = np.arange(0, len(V), 9)
        fitted = spaces.Restriction(space, np.setdiff1d(np.arange(len(V)), rest)) if new is None else space
        method = brief(eq.Isomap).fit(fitted)
        new = rest if new is None else new
        assert save_and_load(method, tmp_path).transform(new).tobytes() == method.transform(new).tobytes()


def test_user_defined_space_is_not_saved(tmp_path):
    class City(spaces.PNorm):
        pass

    method, placed_by_weights = brief(eq.ClassicalMDS).fit(City(X, 1)), brief(eq.LLE).fit(City(X, 1))
    loaded = save_and_load(method, tmp_path)
    to_fitted = cdist(NEW, X, "cityblock")
    np.testing.assert_allclose(loaded.transform(to_fitted), method.transform(NEW), rtol=1e-9)
    with pytest.raises(ValueError, match=r"X has shape \(10, 5\); expected distances \(m, 60\)"):
        loaded.transform(NEW)
    with pytest.raises(ValueError, match="their metric space is user-defined and was not saved"):
        save_and_load(placed_by_weights, tmp_path).transform(to_fitted)

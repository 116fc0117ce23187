import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist

from equipoise.neighbors import panels
from equipoise.neighbors.panels import QueryScan


def exact(Q, X, k):
    return np.argsort(cdist(Q, X), axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("m", [0, 1, 64, 150])
def test_query_scan_finds_the_nearest_points_of_every_query(rng, m):
    X, Q = (rng.standard_normal((n, 20)).astype(np.float32) for n in (3000, m))
    assert_array_equal(QueryScan(X, 2).nearest(Q, 12), exact(Q, X, 12).reshape(m, 12))


def test_query_scan_far_from_the_origin_is_as_precise_as_differences(rng):
    X = (100 + 1e-2 * rng.standard_normal((2000, 8))).astype(np.float32)
    Q = X[:30] + np.float32(1e-3)
    found = np.sort(cdist(Q, X)[np.arange(30)[:, None], QueryScan(X, 1).nearest(Q, 5)], axis=1)
    np.testing.assert_allclose(found, np.sort(cdist(Q, X), axis=1)[:, :5], rtol=1e-3)


def test_query_scan_is_identical_for_any_number_of_threads_and_size_of_blocks(rng, monkeypatch):
    X, Q = (rng.standard_normal((n, 20)).astype(np.float32) for n in (5000, 200))
    truth = QueryScan(X, 1).nearest(Q, 10)
    assert_array_equal(QueryScan(X, 4).nearest(Q, 10), truth)
    monkeypatch.setattr(panels, "WORK", 7.0 * X.size)  # about 7 queries at a time, as in larger data
    assert_array_equal(QueryScan(X, 2).nearest(Q, 10), truth)
    assert_array_equal(np.concatenate([QueryScan(X, 2).nearest(q[None], 10) for q in Q[:5]]), truth[:5])

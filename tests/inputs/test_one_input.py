"""Blocks, pairs, neighbours and principal components agree for every kind of input."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform

from equipoise.arrays.csr import on_host
from equipoise.inputs import Distances, FromSpace, Input, InputSpace, SparseTable, Table, Varying, make_input
from equipoise.linalg.pca import JITTER
from equipoise.spaces import Euclidean

N = 60
X = np.random.default_rng(0).standard_normal((N, 5)) * [5, 3, 1, 1, 1] + 2
X[10] = X[11] + 1e-2  # close together
D = cdist(X, X)
A, B = np.array([3, 3, 0, 59, 7]), np.array([4, 11, 59, 2, 7])


class Bare:
    """A metric space that is not derived from `MetricSpace`."""

    n = N

    def distances(self, i=None, j=None):
        i, j = (np.arange(N) if k is None else k for k in (i, j))
        return D[np.ix_(i, j)]


def device_table() -> Input:
    return make_input(X, "euclidean", None, device="cpu")


KINDS = {
    "table": lambda: make_input(X, "euclidean", None),
    "centred table": lambda: make_input(X, "euclidean", pairs=True).centered(),
    "table by l2": lambda: make_input(X, "l2", pairs=True),
    "table under h": lambda: make_input(X, "euclidean", np.eye(5)),
    "table under h(X)": lambda: make_input(X, "euclidean", lambda Z: np.tile(np.eye(5), (len(Z), 1, 1))),
    "table by minkowski": lambda: make_input(X, "minkowski", pairs=True),
    "sparse table": lambda: make_input(sparse.csr_matrix(X), "euclidean", pairs=True),
    "distances": lambda: make_input(D, "precomputed", None),
    "dissimilarities": lambda: make_input(D, "precomputed", pairs=True),
    "space": lambda: make_input(Euclidean(X), "euclidean", pairs=True),
    "bare space": lambda: make_input(Bare(), "euclidean", pairs=True),
    "device table": device_table,
}


@pytest.fixture(params=[*KINDS])
def data(request) -> Input:
    if request.param == "device table" and find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    return KINDS[request.param]()


def tolerance(data: Input) -> float:
    """Return the absolute tolerance: scikit-learn's sparse formula loses half of the digits of small distances."""
    return 2e-6 if isinstance(data, SparseTable) else 1e-12


def test_make_input_chooses_the_class():
    inputs = {name: KINDS[name]() for name in KINDS if name != "device table"}
    assert all(isinstance(one, Input) and one.n == N and one.known is None for one in inputs.values())
    assert [type(inputs[name]) for name in ("table", "sparse table", "distances", "space", "table under h(X)")] == [
        Table,
        SparseTable,
        Distances,
        FromSpace,
        Varying,
    ]
    assert [name for name, one in inputs.items() if one.points is not None] == [
        "table",
        "centred table",
        "table by l2",
        "table under h",
    ]


def test_blocks_match_the_distances(data):
    rows, columns = np.array([5, 10, 10, 0]), np.array([11, 0, 59])
    assert_allclose(data.block(rows, columns), D[np.ix_(rows, columns)], rtol=1e-9, atol=tolerance(data))
    assert_allclose(data.block(rows), D[rows], rtol=1e-9, atol=tolerance(data))
    assert_allclose(data.block_by_products(rows, columns), D[np.ix_(rows, columns)], atol=2e-6)
    assert_allclose(data.block_by_products(rows), D[rows], atol=2e-6)


def test_pairs_match_the_distances(data):
    assert_allclose(data.pairs(A, B), D[A, B], rtol=1e-9, atol=tolerance(data))
    assert data.pairs(A[:0], B[:0]).shape == (0,)


@pytest.mark.parametrize("regular", [True, False])
def test_stored_pairs_match_the_distances(data, regular):
    columns = np.add.outer(np.arange(N), [1, 7, 30]) % N
    pattern = sparse.csr_matrix((np.ones(3 * N), (np.repeat(np.arange(N), 3), columns.ravel())), shape=(N, N))
    if not regular:
        more = sparse.csr_matrix((np.ones(15), (np.full(15, 4), np.arange(5, 20))), shape=(N, N))
        pattern = (pattern + more).tocsr()
    stored = pattern.tocoo()
    assert_allclose(data.stored_pairs(pattern, 1), D[stored.row, stored.col], rtol=1e-9, atol=tolerance(data))


def test_condensed_and_squared_match_the_distances(data):
    assert_allclose(data.condensed(np.float64, 1), pdist(X), rtol=1e-9, atol=tolerance(data))
    assert_allclose(data.condensed(np.float32, 2), pdist(X), rtol=1e-5, atol=2e-6)
    assert_allclose(data.squared(), D**2, rtol=1e-9, atol=1e-10)


def test_neighbors_are_exact_with_recall_1(data):
    k = 7
    for D2, recall in (data.neighbors(k, 1), data.measured_neighbors(k, 1)):
        D2 = on_host(D2)
        assert recall == 1.0 and D2.shape == (N, N)
        order = np.argsort(D2.data.reshape(N, k), axis=1)
        near = np.take_along_axis(D2.indices.reshape(N, k), order, axis=1)
        d2 = np.take_along_axis(D2.data.reshape(N, k), order, axis=1)
        assert_array_equal(near, np.argsort(D + np.diag(np.full(N, np.inf)), axis=1)[:, :k])
        assert_allclose(d2, np.sort(D + np.diag(np.full(N, np.inf)), axis=1)[:, :k] ** 2, rtol=1e-3, atol=1e-5)


def test_principal_components_match_the_svd(data):
    centred = X - X.mean(axis=0)
    scores = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    scores /= scores[:, 0].std()
    found = np.asarray(data.principal(2, np.random.RandomState(0)))
    for c in range(2):
        sign = np.sign(found[:, c] @ scores[:, c])
        assert np.abs(sign * found[:, c] - scores[:, c]).max() < 12 * JITTER


def test_input_space_matches_the_distances(data):
    points = np.array([50, 10, 3])
    space = InputSpace(data, points)
    assert space.n == 3
    assert_allclose(space.matrix(), D[np.ix_(points, points)], rtol=1e-9, atol=tolerance(data))


def test_fitted_rows_as_new_rows(data):
    rows, columns = np.array([5, 10]), np.array([11, 0, 59])
    if isinstance(data, FromSpace):
        assert_allclose(data.squared_to_all(data.rows(rows)), D[rows] ** 2)
        new = data.check_new(X[rows] if isinstance(data.space, Euclidean) else D[rows])
    else:
        new = data.rows(rows)
    assert_allclose(data.squared_to_all(new), D[rows] ** 2, rtol=1e-6, atol=1e-8)
    if not data.on_device:  # MDS, which places by blocks, has its table on the CPU
        assert_allclose(data.new_block(new, columns), D[np.ix_(rows, columns)], rtol=1e-9, atol=tolerance(data))
    near = data.nearest(new, 3, 1)
    assert near.d2.shape == (2, N) and near.twins.tolist() == [5, 10]


def test_missing_distances_are_nan_or_raise():
    missing = D.copy()
    missing[2, 5] = missing[5, 2] = np.nan
    data = make_input(missing, "precomputed", pairs=True)
    known = data.known
    assert known is not None and known.nnz == N * (N - 1) - 2 and not data.sparse
    assert np.isnan(data.block(np.array([2]), np.array([5]))).all() and np.isnan(
        data.pairs(np.array([5]), np.array([2]))
    )
    assert np.isnan(data.condensed(np.float64, 1)).sum() == 1
    pairs = make_input(known, "precomputed", pairs=True)
    assert pairs.sparse and pairs.known is not None and not pairs.has_principal
    for call in (lambda: pairs.block(A), lambda: pairs.pairs(A, B), lambda: pairs.condensed(np.float64, 1)):
        with pytest.raises(ValueError, match="only some pairs"):
            call()
    with pytest.raises(ValueError, match="not available after a fit to sparse distances"):
        pairs.new_block(D, A)


def test_affinities_have_no_distances_and_raise():
    data = make_input(np.exp(-D), "euclidean", None, "precomputed")
    for call in (lambda: data.block(A), lambda: data.pairs(A, B), data.squared, lambda: data.neighbors(3, 1)):
        with pytest.raises(ValueError, match="X contains affinities, not distances"):
            call()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_inner_products_have_no_blocks(container):
    data = make_input(container(X), "inner_product", None)
    assert data.neighbors(3, 1)[0].nnz == 3 * N
    with pytest.raises(ValueError, match="distances from one point cannot be compared with those from another"):
        data.block(A)
    with pytest.raises(ValueError, match="metric must be a callable or one of"):
        make_input(container(X), "inner_product", pairs=True)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_invalid_distance_names_the_points(container):
    data = make_input(container(X), lambda a, b: np.nan, pairs=True)
    with pytest.raises(ValueError, match="the distance between points 3 and 4 is nan"):
        data.block(A[:1], B[:1])


def test_metrics_with_parameters_from_the_data():
    for metric in ("seuclidean", "mahalanobis"):
        data = make_input(X, metric, pairs=True)
        truth = squareform(pdist(X, metric))
        assert_allclose(data.block(A), truth[A], rtol=1e-8, atol=1e-8)
        assert_allclose(data.pairs(A, B), truth[A, B], rtol=1e-8, atol=1e-8)
        assert_allclose(data.new_block(data.check_new(X[:4]), B), truth[np.ix_(range(4), B)], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("metric", ["cosine", "correlation", "manhattan", "chebyshev", "canberra", "mahalanobis"])
def test_distances_of_pairs_take_few_calls_of_the_metric(metric, monkeypatch):
    calls = []
    table, rng = make_input(X, metric, pairs=True), np.random.default_rng(1)
    i, j = rng.integers(N, size=256), rng.integers(N, size=256)
    expected = table.block(np.arange(N))[i, j]
    block = table.block
    monkeypatch.setattr(table, "block", lambda *args: calls.append(1) or block(*args))
    assert_allclose(table.pairs(i, j), expected, rtol=1e-9, atol=1e-12)
    assert len(calls) <= 4


@pytest.mark.parametrize("size", [N // 2, 20 * N])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_function_is_called_once_for_each_pair_of_points(convert, size):
    calls = []

    def metric(a, b):
        calls.append(1)
        return float(abs(a - b).sum())

    table, rng = make_input(convert(X), metric, pairs=True), np.random.default_rng(1)
    i, j = rng.integers(3, size=size), rng.integers(5, size=size)
    calls.clear()  # a few calls check the metric
    found = table.pairs(i, j)
    assert len(calls) == len(set(zip(i.tolist(), j.tolist(), strict=True))) < size
    assert_allclose(found, np.abs(X[i] - X[j]).sum(axis=1))

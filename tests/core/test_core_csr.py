"""CSR patterns in the compiled core: every error once, and one check for all matrices with the same index arrays."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

import equipoise as eq
from equipoise import _core
from equipoise.arrays.csr import compiled_pattern, make_csr, symmetrized
from equipoise.engines import Exact, Reference, Sampled
from equipoise.kernels import StudentT


def make(indptr, indices, n_columns=4):
    return _core.Csr(np.array(indptr, np.int64), np.array(indices, np.int32), n_columns)


@pytest.mark.parametrize(
    ("indptr", "indices", "n_columns", "message"),
    [
        ([], [], 4, "indptr is empty"),
        ([0, 1], [0], -1, "n_columns must not be negative, got -1"),
        ([1, 2], [0, 1], 4, "indptr must start at 0, got 1"),
        ([0, 2, 1, 3], [0, 1, 2], 4, "indptr must not decrease, but row 1 goes from 2 to 1"),
        ([0, 2, 3], [0, 1], 4, "indptr ends at 3, but there are 2 column indices"),
        ([0, 1], [0, 1], 4, "indptr ends at 1, but there are 2 column indices"),
        ([0, 1, 3], [0, 3, -1], 4, "row 1 has column index -1, but the matrix has 4 columns"),
        ([0, 1, 1, 3], [0, 3, 4], 4, "row 2 has column index 4, but the matrix has 4 columns"),
    ],
)
def test_invalid_csr_raises(indptr, indices, n_columns, message):
    with pytest.raises(ValueError, match=message):
        make(indptr, indices, n_columns)


def test_csr_rejects_other_dtypes_and_strides():
    with pytest.raises(TypeError, match="incompatible"):
        _core.Csr(np.zeros(2, np.int32), np.zeros(0, np.int32), 1)
    with pytest.raises(TypeError, match="incompatible"):
        _core.Csr(np.zeros(2, np.int64), np.zeros(0, np.int64), 1)
    with pytest.raises(TypeError, match="incompatible"):
        _core.Csr(np.zeros(4, np.int64)[::2], np.zeros(0, np.int32), 1)


def test_csr_shape_and_nnz():
    A = make([0, 2, 2, 3], [0, 3, 1])
    assert A.shape == (3, 4) and A.nnz == 3


def test_symmetrize_checks_array_sizes():
    A, out = make([0, 1, 1, 1, 1], [1]), (np.empty(5, np.int64), np.empty(2, np.int32), np.empty(2))
    with pytest.raises(ValueError, match="values must have one element per entry of A"):
        _core.symmetrize(A, np.ones(2), *out, 1)
    with pytest.raises(ValueError, match="out_indptr must have one element more"):
        _core.symmetrize(A, np.ones(1), out[0][1:].copy(), *out[1:], 1)
    with pytest.raises(ValueError, match="out_indices and out_values have the wrong length"):
        _core.symmetrize(A, np.ones(1), out[0], out[1][1:].copy(), out[2], 1)
    with pytest.raises(ValueError, match="A must be square"):
        _core.symmetrize(make([0, 1], [1]), np.ones(1), *out, 1)


def test_pair_distances_and_shortest_paths_check_indices():
    with pytest.raises(ValueError, match="neighbors must be rows of X"):
        _core.pair_distances(
            np.zeros((3, 2)), np.array([[0], [3], [1]], np.int32), np.arange(3, dtype=np.int32), np.empty((3, 1)), 1
        )
    graph, out = make([0, 1, 2], [1, 0], 2), np.empty((1, 2))
    with pytest.raises(ValueError, match="sources must be points"):
        _core.shortest_paths(graph, np.ones(2), np.array([2]), out, 1)
    with pytest.raises(ValueError, match="must not be negative or NaN"):
        _core.shortest_paths(graph, np.array([1.0, np.nan]), np.array([0]), out, 1)


# Matrices with the same index arrays are checked once


def make_graph():
    return symmetrized(sparse.random(40, 40, 0.2, format="csr", random_state=0, dtype=np.float32))


@pytest.fixture
def graph():
    return make_graph()


def test_matrices_with_shared_indices_are_checked_once(monkeypatch):
    graph = make_graph()
    pattern = compiled_pattern(graph)
    monkeypatch.setattr(_core, "Csr", None)  # a second check would call it
    assert compiled_pattern(graph) is pattern
    twin = make_csr(graph.data * 2, graph.indices, graph.indptr, graph.shape)
    assert compiled_pattern(twin) is pattern
    del graph
    gc.collect()
    assert compiled_pattern(twin) is pattern
    assert pickle.loads(pickle.dumps(twin)).nnz == twin.nnz


def test_new_index_arrays_are_checked_again(graph):
    compiled_pattern(graph)
    graph.indices = graph.indices.copy()
    graph.indices[3] = 99
    with pytest.raises(ValueError, match="column index 99, but the matrix has 40 columns"):
        compiled_pattern(graph)
    graph.indices[3] = 0
    graph.data[:5] = 0
    before = compiled_pattern(graph).nnz
    graph.eliminate_zeros()
    assert compiled_pattern(graph).nnz == before - 5


def test_patterns_are_freed_with_their_matrices():
    graph = make_graph()
    twin = make_csr(graph.data, graph.indices, graph.indptr, graph.shape)
    compiled_pattern(graph), compiled_pattern(twin)
    indices = weakref.ref(graph.indices)
    del graph
    gc.collect()
    assert indices() is twin.indices
    del twin
    gc.collect()
    assert indices() is None


def test_int64_indices_and_spare_capacity(graph):
    wide = graph.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert compiled_pattern(wide).nnz == graph.nnz
    wide.indices = np.where(np.arange(wide.nnz) == 4, 2**32, wide.indices)  # 0 in 32 bits
    with pytest.raises(ValueError, match="column index 4294967296, but the column indices run from 0 to 39"):
        compiled_pattern(wide)
    roomy = graph.copy()
    roomy.data, roomy.indices = np.append(roomy.data, 1), np.append(roomy.indices, np.int32(77))
    assert_array_equal(symmetrized(roomy).toarray(), symmetrized(graph).toarray())


def test_shared_pattern_with_other_values(graph, rng):
    Y = rng.standard_normal((40, 2))
    for scale in (1.0, 3.0):
        A = make_csr(scale * graph.data, graph.indices, graph.indptr, graph.shape)
        force = Exact(1).edges(Y, A, StudentT(), -1.0, potential=False)[1]
        truth = Reference().edges(Y, A, StudentT(), -1.0, potential=False)[1]
        assert_allclose(force, truth, rtol=1e-6, atol=1e-6)


# Column indices out of range raise through the public interface instead of crashing

ESTIMATORS = [
    eq.TSNE(metric="precomputed", perplexity=5),
    eq.UMAP(metric="precomputed", n_neighbors=5),
    eq.MDS(metric="precomputed"),
    eq.Isomap(metric="precomputed"),
    eq.LaplacianEigenmaps(metric="precomputed"),
]


@pytest.mark.parametrize("method", ESTIMATORS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("column", [-1, 60, 2**30])
def test_estimators_reject_column_indices_out_of_range(rng, method, column):
    G = kneighbors_graph(rng.standard_normal((60, 5)), 20, mode="distance")
    G.indices[5 * 20 + 3] = column
    with pytest.raises(
        ValueError, match=f"row 5 of X has the column index {column}, but column indices run from 0 to 59"
    ):
        method.fit(G)


def test_sparse_table_with_column_index_out_of_range_raises(rng):
    X = sparse.random(50, 30, 0.2, format="csr", random_state=0)
    X.indices[-1] = 30
    with pytest.raises(ValueError, match="column index 30, but column indices run from 0 to 29"):
        eq.TSNE(perplexity=5).fit(X)


def test_sampled_engine_checks_a_restored_graph(graph):
    engine = Sampled(1, 0)
    engine.sum_exactly(graph, 2)
    state = engine.__getstate__()
    state["_always"][1][7] = 40
    with pytest.raises(ValueError, match="column index 40, but the matrix has 40 columns"):
        Sampled(1, 0).__setstate__(state)

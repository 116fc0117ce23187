import pickle
import sys
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from support.cases import to_dense

from equipoise.arrays.csr import (
    entries_where,
    entry_rows,
    make_csr,
    on_host,
    permuted,
    shorten,
    stored_values,
    symmetrized,
    times_map,
    with_values,
)


def graph(n=300, density=0.03, dtype=np.float32):
    A = sparse.random(n, n, density, format="csr", random_state=0, dtype=dtype)
    A.data[:] += 0.1
    return A


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetrized_equals_sum_with_transpose(dtype):
    A = graph(dtype=dtype)
    S, truth = symmetrized(A), (A + A.T).toarray()
    assert S.dtype == dtype and S.nnz == np.count_nonzero(truth)
    assert_array_equal(S.toarray(), truth)
    assert_array_equal(S.toarray(), S.toarray().T)
    assert all((np.diff(S.indices[a:b]) > 0).all() for a, b in zip(S.indptr[:-1], S.indptr[1:], strict=True))


def test_symmetrized_handles_unsorted_columns_empty_rows_and_a_hub():
    A = graph().tolil()
    A[:, 7] = 1.0
    A[20:40] = 0.0
    A = A.tocsr()
    shuffled = A.copy()
    for a, b in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        shuffled.indices[a:b], shuffled.data[a:b] = A.indices[a:b][::-1], A.data[a:b][::-1]
    before = shuffled.indices.copy()
    assert_array_equal(symmetrized(shuffled).toarray(), (A + A.T).toarray())
    assert_array_equal(shuffled.indices, before)
    assert symmetrized(sparse.csr_matrix((5, 5))).nnz == 0


def test_symmetrized_is_identical_for_any_number_of_threads():
    A = graph()
    one, *more = (symmetrized(A, threads) for threads in (1, 2, 3, 4, 400))
    for other in more:
        for name in ("data", "indices", "indptr"):
            assert getattr(other, name).tobytes() == getattr(one, name).tobytes()


def test_symmetrized_allocates_little_beyond_the_result():
    A = graph(2000, 0.02)
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)  # newer SciPy makes 64-bit indices
    room = 2 * A.nnz * 8  # 4 bytes per column index and 4 per value, for A and its transpose
    tracemalloc.start()
    S = symmetrized(A)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.1 * room and kept < 1.1 * 8 * S.nnz


@pytest.mark.parametrize("size", [0, 1, 900_000, 990_000, 1_000_000])
def test_shorten_frees_a_large_end_and_does_not_move_the_rest(size):
    array = np.arange(1_000_000)
    address = array.ctypes.data
    short = shorten(array, size)
    assert_array_equal(short, np.arange(size))
    kept = short if short.base is None else short.base
    assert kept.size in (size, 1_000_000) and kept.size - size <= 62_500
    assert size < 900_000 or sys.platform != "linux" or short.ctypes.data == address


def test_make_csr_shares_arrays_and_works_with_scipy():
    A = graph()
    M = make_csr(A.data, A.indices, A.indptr.astype(np.int64), A.shape)
    assert M.data is A.data and np.shares_memory(M.indices, A.indices)
    v = np.ones(300)
    assert_array_equal(M @ v, A @ v)
    for same in (M.copy(), M.tocoo(), M.T.T, pickle.loads(pickle.dumps(M)), M.astype(np.float32)):
        assert_array_equal(same.toarray(), A.toarray())


@pytest.mark.parametrize("form", ["dense", "csr", "device"])
def test_values_and_products_have_the_form_of_the_matrix(form):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from equipoise.arrays.device_csr import Rows

    A, U = graph(40, 0.1), np.random.default_rng(0).standard_normal((40, 2)).astype(np.float32)
    dense, device = A.toarray(), Rows.of(A, torch.device("cpu"))
    M = {"dense": dense, "csr": A, "device": device}[form]
    doubled = with_values(M, 2 * stored_values(M))
    assert type(doubled) is type(M)
    assert_array_equal(to_dense(on_host(doubled)), 2 * dense)
    np.testing.assert_allclose(
        times_map(M, torch.from_numpy(U) if form == "device" else U), dense @ U, rtol=1e-5, atol=1e-6
    )
    if form == "csr":
        product = times_map(A, torch.from_numpy(U))
        assert isinstance(product, torch.Tensor)
        assert_array_equal(product.numpy(), A @ U)
    if form != "dense":
        rows = np.asarray(entry_rows(M))
        assert rows.dtype == np.int32
        assert_array_equal(rows, A.tocoo().row)
        kept = entries_where(M, M.indices > 20)
        assert_array_equal(to_dense(on_host(kept)), np.where(np.arange(40) > 20, dense, 0))


def test_permuted_matches_dense_indexing(rng):
    A = sparse.random(30, 30, 0.2, format="csr", random_state=0)
    order = rng.permutation(30)
    expected = A.toarray()[np.ix_(order, order)]
    assert_array_equal(permuted(A, order).toarray(), expected)
    assert_array_equal(permuted(A.toarray(), order), expected)
    roomy = A.copy()
    roomy.data, roomy.indices = np.append(A.data, [7.0, 8.0]), np.append(A.indices, [0, 0]).astype(A.indices.dtype)
    assert_array_equal(permuted(roomy, order).toarray(), expected)

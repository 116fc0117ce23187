"""Work on several threads, and the number of threads of a block of code."""

import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from equipoise.arrays import csr
from equipoise.arrays.blocks import FIXED_PCA_ROWS
from equipoise.arrays.csr import (
    compiled_pattern,
    current_threads,
    on_threads,
    permuted,
    run_on_threads,
    sum_positive,
    symmetrized,
    times_vector,
)
from equipoise.linalg.pca import principal_components


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_work_runs_on_fewer_threads_when_none_can_be_started(monkeypatch, allowed):
    start, started = threading.Thread.start, []

    def limited_start(thread):
        if len(started) == allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited_start)
    done = []
    run_on_threads(done.append, range(100), 4)
    assert sorted(done) == list(range(100)) and len(started) == min(allowed, 3)


def test_error_in_a_thread_is_raised_in_the_caller():
    def fail(item):
        raise MemoryError(f"item {item}")

    with pytest.raises(MemoryError, match="item"):
        run_on_threads(fail, range(10), 3)


def test_interrupt_between_items_stops_the_threads(monkeypatch):
    class InterruptedLock:
        def __init__(self):
            self.lock = threading.Lock()

        def __enter__(self):
            if threading.current_thread() is threading.main_thread() and len(done) > 2:
                raise KeyboardInterrupt
            return self.lock.__enter__()

        def __exit__(self, *exception):
            return self.lock.__exit__(*exception)

    def work(item):
        time.sleep(0.01)
        done.append(item)

    done, before = [], threading.active_count()
    monkeypatch.setattr(csr, "Lock", InterruptedLock)
    with pytest.raises(KeyboardInterrupt):
        run_on_threads(work, range(100), 3)
    assert threading.active_count() == before and len(done) < 50


def test_interrupt_while_waiting_for_threads_lets_them_finish(monkeypatch):
    join, taken, interrupted, done = threading.Thread.join, threading.Event(), threading.Event(), []

    def interrupted_join(thread, timeout=None):
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        join(thread, timeout)

    def work(item):
        if threading.current_thread() is threading.main_thread():
            assert taken.wait(60)
            return
        taken.set()
        assert interrupted.wait(60)
        time.sleep(0.2)
        done.append(item)

    monkeypatch.setattr(threading.Thread, "join", interrupted_join)
    with pytest.raises(KeyboardInterrupt):
        run_on_threads(work, range(100), 2)
    assert len(done) == 1


def test_number_of_threads_is_set_for_a_block_and_a_thread():
    seen = []
    with on_threads(3):
        with on_threads(5):
            assert current_threads() == 5
        assert current_threads() == 3
        other = threading.Thread(target=lambda: seen.append(current_threads()))
        other.start()
        other.join()
    assert current_threads() == 1 and seen == [1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_operations_have_the_same_bytes_on_any_number_of_threads(rng, dtype):
    n = 5000
    A = sparse.random(n, n, 0.004, format="csr", random_state=0, dtype=dtype)
    x, order = rng.standard_normal(n).astype(dtype), rng.permutation(n)

    def results(count):
        with on_threads(count):
            S, B = symmetrized(A, count), permuted(A.copy(), order)
            arrays = [S.data, S.indices, S.indptr, B.data, B.indices, B.indptr, times_vector(A, x)]
            return [*arrays, np.array(sum_positive(A, np.log))]

    expected = results(1)
    for count in (2, 3, 4, 8, 16):
        for one, other in zip(expected, results(count), strict=True):
            assert_array_equal(one, other)
    data, indices, indptr, product, total = *expected[:3], *expected[6:]
    S = sparse.csr_matrix((data, indices, indptr), shape=(n, n))
    assert ((A + A.T).tocsr() != S).nnz == 0 and S.has_sorted_indices
    assert_allclose(product, A @ x, rtol=1e-5)
    assert_allclose(total, np.log(A.data.astype(np.float64)).sum(), rtol=1e-12)


def test_wrong_index_is_found_by_any_number_of_threads():
    A = sparse.random(2000, 2000, 0.05, format="csr", random_state=0)
    A.indices[150_000] = 2000
    with on_threads(4), pytest.raises(ValueError, match="has column index 2000"):
        compiled_pattern(A)


def test_principal_components_have_the_same_bytes_on_any_number_of_threads(rng):
    X = rng.standard_normal((3 * FIXED_PCA_ROWS + 17, 6)) * [5, 3, 1, 1, 1, 1] + 100

    def components(count):
        with on_threads(count):
            return principal_components(X, 2, None)

    Y = components(1)
    for count in (2, 3, 16):
        assert_array_equal(components(count), Y)
    U = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0][:, :2] * np.sqrt(len(X))
    assert_allclose(np.abs((Y / Y.std(axis=0) * U).mean(axis=0)), 1, atol=1e-9)

"""The same bytes on a busy machine, for any alignment of the input in memory and any number of BLAS threads."""

import os

import numpy as np
import pytest
from support.methods import brief, every_method
from threadpoolctl import threadpool_limits

import equipoise as eq
from concurrency.busy import busy_cores
from concurrency.clusters import NEW, X, brief_on_clusters
from concurrency.repeats import differing_digests, differing_repeats, run_digests
from equipoise.evaluate import shepard, stress

LARGE = np.random.default_rng(0).normal(size=(420, 40))  # enough for BLAS to use several threads


def shifted(table, offset):
    """Return a copy of the table that begins `offset` bytes after a multiple of 64."""
    buffer = np.empty(table.nbytes + 128, np.uint8)
    begin = -buffer.ctypes.data % 64 + offset
    copy = buffer[begin : begin + table.nbytes].view(table.dtype).reshape(table.shape)
    copy[...] = table
    assert copy.ctypes.data % 64 == offset
    return copy


@pytest.mark.trials
@pytest.mark.parametrize("Method", [eq.TSNE, eq.UMAP, eq.MDS, eq.Isomap], ids=lambda Method: Method.__name__)
def test_repeats_on_a_busy_machine_have_equal_bytes(Method):  # all methods: python -m tests.concurrency
    with busy_cores(2 * (os.cpu_count() or 1)):
        assert differing_repeats(Method, 3) == []


@pytest.mark.trials
@every_method
def test_bytes_do_not_depend_on_the_alignment_of_the_input(Method):
    runs = []
    for i in range(0, 16, 5):
        with threadpool_limits(1 + i % 3, user_api="blas"):
            runs.append(run_digests(brief_on_clusters(Method), shifted(X, 4 * i), shifted(NEW, 4 * (15 - i))))
    for run in runs:
        assert run.keys() == runs[0].keys()
    assert differing_digests([{name: run[name] for name in run if name != "saved file"} for run in runs]) == []


@every_method
def test_bytes_do_not_depend_on_the_number_of_blas_threads(Method):
    runs = []
    for threads in (1, 3):
        with threadpool_limits(threads, user_api="blas"):
            runs.append(run_digests(brief(Method, n_iter=5), LARGE[:400], LARGE[400:]))
    assert differing_digests(runs) == []


def outside_fits():
    """Return results of functions that use BLAS outside a fit."""
    Y = LARGE[:, :2]
    problem = eq.PCA(random_state=0).problem(LARGE)
    aligned = eq.procrustes.fit_similarity(np.tile(Y, (50, 1)), np.tile(LARGE[:, 2:4], (50, 1)))
    yield stress(LARGE, Y).scale_free
    yield shepard(LARGE, Y).correlation
    yield problem.loss(np.ascontiguousarray(Y))
    yield problem.optimize(n_iter=20)
    problem.descent(n_iter=5).run()
    yield problem.Y
    yield aligned(np.tile(Y, (50, 1)))
    yield eq.MDS(metric="mahalanobis", n_iter=2, random_state=0).fit_transform(np.tile(LARGE, (3, 1)) + 1.0)


def test_measures_and_problems_do_not_depend_on_the_number_of_blas_threads():
    results = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            results.append([np.asarray(value).tobytes() for value in outside_fits()])
    assert [[a == b for a, b in zip(results[0], other, strict=True)] for other in results[1:]] == [[True] * 7] * 2

"""Exact neighbours over ranks, also where float32 cannot order the distances."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.thread_ranks import run_ranks

from equipoise.distributed.exact_scan import SPARE, OwnVectors, nearest_rows
from equipoise.distributed.partition import Partition
from equipoise.distributed.row_vectors import RowVectors

pytestmark = pytest.mark.ranks
N = 2600
rng = np.random.default_rng(0)
TABLES = {
    "normal": rng.normal(size=(N, 7)),
    "far from the mean": np.where(np.arange(N)[:, None] < N // 2, 0, 1e7) + rng.normal(size=(N, 3)),
    "many ties": rng.integers(3, size=(N, 3)).astype(np.float64),
    "all equal": np.ones((N, 2)),
    "very large": 1e100 * rng.normal(size=(N, 2)),
    "float32": rng.normal(size=(N, 4)).astype(np.float32),
}


def brute_force(X, Q, k, excluded):
    d2 = np.square(X.astype(np.float64) - Q.astype(np.float64)[:, None]).sum(axis=2)
    if excluded is not None:
        d2[np.arange(len(Q)), excluded] = np.inf
    order = np.argsort(d2, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(d2, order, axis=1)


def search(size, X, Q, k, excluded=None):
    """Return the neighbours of all queries, of which each rank asks for some."""
    vectors = RowVectors("euclidean", X.shape[1])
    vectors.center = X.mean(axis=0, dtype=np.float64)
    vectors.scale = float(np.abs(X - vectors.center).max()) or 1.0

    def work(group):
        partition = Partition.of(group, N)
        own, mine = OwnVectors(partition, X[partition.own], vectors, 1), np.arange(len(Q)) % size == group.rank
        return np.flatnonzero(mine), *nearest_rows(group, own, Q[mine], k, None if excluded is None else excluded[mine])

    indices, d2 = np.empty((len(Q), k), np.int64), np.empty((len(Q), k))
    for mine, *found in run_ranks(size, work):
        indices[mine], d2[mine] = found
    return indices, d2


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("k", [1, 20])
def test_neighbours_are_those_of_all_distances(name, k):
    X = TABLES[name]
    excluded = np.random.default_rng(1).choice(N, 30, replace=False)
    assert k + SPARE < N // 4
    for size in (1, 2, 3, 4):
        found = search(size, X, X[excluded], k, excluded)
        for part, expected in zip(found, brute_force(X, X[excluded], k, excluded), strict=True):
            assert_array_equal(part, expected)


def test_queries_far_outside_the_table():
    X = TABLES["normal"]
    Q = np.array([[1e20] * 7, [-1e60] * 7, [0] * 7], np.float64)
    for size in (1, 3):
        for part, expected in zip(search(size, X, Q, 5), brute_force(X, Q, 5, None), strict=True):
            assert_array_equal(part, expected)

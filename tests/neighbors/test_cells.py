"""The compiled neighbour search: points in panels, groups of them, and cells around k-means centres."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from equipoise import _core
from equipoise.neighbors import search as neighbors
from equipoise.neighbors.cells import LISTED, MORE_LISTED, Cells, listed_for
from equipoise.neighbors.centres import Centres
from equipoise.neighbors.panels import Members, Panels, one_group, scan
from equipoise.neighbors.search import nearest_neighbors

ALL = np.array([0, 1]), np.zeros(1, np.int32)  # one group of queries and one of points
THREADS = (1, 2, 3, 4, 8, 16)


def squared(Q, X):
    return ((Q[:, None].astype(np.float64) - X) ** 2).sum(axis=2)


def brute_force(X, k):
    d2 = squared(X, X)
    np.fill_diagonal(d2, np.inf)
    return np.argsort(d2, axis=1, kind="stable")[:, :k]


def recall_of(found, exact):
    return np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)])


@pytest.mark.parametrize("k", [1, 7, 91, 700, 2500])
def test_nearest_of_panels_match_argsort_and_order_ties_by_index(rng, k):
    X, Q = (rng.integers(-3, 4, (m, 4)).astype(np.float32) for m in (2500, 70))  # integers: distances are exact
    found = Panels(X, one_group(2500), 2).nearest(k, Q, one_group(70), ALL)
    assert_array_equal(found, np.argsort(squared(Q, X), axis=1, kind="stable")[:, :k])


@pytest.mark.parametrize("n", [2, 3, 8, 9, 50])
def test_scan_of_few_points_with_k_up_to_n_minus_1(rng, n):
    X = rng.standard_normal((n, 6)).astype(np.float32)
    for k in {1, n - 1}:
        assert_array_equal(np.sort(scan(X, X, k, 3)), np.sort(brute_force(X, k)))


@pytest.mark.parametrize("D", [6, 50, 130])
def test_scan_matches_brute_force_in_float64(rng, D):
    X = rng.standard_normal((3000, D)).astype(np.float32)
    assert recall_of(scan(X, X, 30, 2), brute_force(X, 30)) > 0.9999  # ties in float32


def test_tight_clusters_far_from_the_origin_are_compared_by_differences(rng):
    X = rng.standard_normal((10, 12))[np.arange(2000) % 10] + 1e-5 * rng.standard_normal((2000, 12))
    X = X.astype(np.float32)
    assert recall_of(scan(X, X, 5, 2), brute_force(X, 5)) > 0.999


def test_groups_that_share_panels_list_each_point_once(rng):
    X = rng.standard_normal((100, 5)).astype(np.float32)
    points = Panels(X, Members(np.sort(rng.integers(0, 40, 100)), 40), 1)
    groups = np.array([0, 3, 4, 5, 20, 39], np.int32)
    candidates = np.concatenate([np.arange(*points.members.starts[g : g + 2]) for g in groups])
    found = points.nearest(len(candidates), X, one_group(100), (np.array([0, len(groups)]), groups))
    assert all(len(np.unique(row)) == len(candidates) for row in found)
    nearest = points.nearest(5, X, one_group(100), (np.array([0, len(groups)]), groups))
    d2 = squared(X, X)
    reached = np.sort(d2[:, candidates], axis=1)[:, 4]  # other points of shared panels may be nearer
    assert (np.take_along_axis(d2, nearest, axis=1).max(axis=1) <= reached + 1e-5).all()


@pytest.mark.parametrize("without_avx", [False, True])
def test_result_does_not_depend_on_threads_blocks_or_instruction_set(rng, monkeypatch, without_avx):
    X = np.repeat(rng.standard_normal((1500, 8)), 2, axis=0).astype(np.float32)  # every point twice: ties
    expected = Cells(X, X, 1).search_with_recall(10, 0.9)
    monkeypatch.setattr("equipoise.neighbors.panels.WORK", 1e6)
    _core.use_base_instruction_set(without_avx)
    try:
        for n_threads in THREADS:
            found, recall = Cells(X, X, n_threads).search_with_recall(10, 0.9)
            assert found.tobytes() == expected[0].tobytes() and recall == expected[1]
    finally:
        _core.use_base_instruction_set(False)


def test_graph_has_the_same_bytes_for_any_number_of_threads(rng, monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_WORK", 0)
    X = rng.standard_normal((3000, 8))
    graphs = [nearest_neighbors(X, 12, n_threads=n_threads) for n_threads in THREADS]
    assert len({graph.indices.tobytes() + graph.distances.tobytes() for graph in graphs}) == 1
    d = np.sqrt(squared(X, X))
    assert_allclose(graphs[0].distances, np.take_along_axis(d, graphs[0].indices, axis=1), rtol=1e-12)


def test_search_of_all_cells_is_exact(rng):
    X = rng.standard_normal((2500, 9)).astype(np.float32)
    found = Cells(X, X, 2).search(25, 10**6)
    assert recall_of(found, brute_force(X, 25)) > 0.9999


@pytest.mark.parametrize("compared", [1024, 60])  # all centres of the cells, or only those of a few regions
def test_cells_reach_the_measured_recall(rng, monkeypatch, compared):
    monkeypatch.setattr("equipoise.neighbors.centres.COMPARED", compared)
    X = rng.standard_normal((4000, 8)).astype(np.float32)
    cells, exact = Cells(X, X, 2), brute_force(X, 20)
    for min_recall in (0.8, 0.95, 1.0):
        found, measured = cells.search_with_recall(20, min_recall)
        assert not (found == np.arange(4000)[:, None]).any()
        assert measured >= min_recall  # measured on a sample of 500 of the 4,000 rows
        assert recall_of(found, exact) >= min_recall - 0.02


def test_points_rank_more_cells_for_a_high_recall(rng):
    assert listed_for(0.99) == LISTED < MORE_LISTED == listed_for(0.997)
    X = rng.standard_normal((4000, 8)).astype(np.float32)
    few, more = Cells(X, X, 2), Cells(X, X, 2, MORE_LISTED)
    assert_array_equal(more.search(20, LISTED), few.search(20, LISTED))  # the first ranks are the same


def clusters(rng):
    return rng.standard_normal((4000, 10)) * 0.05 + 3 * rng.standard_normal((60, 10))[rng.integers(0, 60, 4000)]


def few_large(rng):
    sizes = (2.0 ** -np.arange(12))[np.minimum(rng.geometric(0.5, 4000) - 1, 11)]
    return rng.standard_normal((4000, 10)) * sizes[:, None]


DATA = {
    "clusters": clusters,
    "clusters of many sizes": few_large,
    "heavy tails": lambda rng: rng.standard_t(1.5, (4000, 10)),
    "curve": lambda rng: np.sin(rng.uniform(0, 9, (4000, 1)) * np.arange(1, 11)),
    "half of the rows are equal": lambda rng: rng.standard_normal((4000, 10)) * (np.arange(4000)[:, None] % 2),
    "binary": lambda rng: rng.integers(0, 2, (4000, 10)).astype(float),
    "one coordinate": lambda rng: rng.standard_normal((4000, 1)) * np.eye(1, 10),
}


@pytest.mark.parametrize("kind", DATA)
def test_recall_is_kept_for_every_kind_of_data(rng, monkeypatch, kind):
    monkeypatch.setattr(neighbors, "EXACT_WORK", 0)
    X = DATA[kind](rng)
    graph = nearest_neighbors(X, 15, n_threads=2)
    d = np.sqrt(squared(X, X))
    np.fill_diagonal(d, np.inf)
    kth = np.sort(d, axis=1)[:, 14:15]
    true = (graph.distances <= kth * (1 + 1e-6)).mean()  # ties count as found
    assert graph.recall >= 0.99 and true >= 0.98
    assert all(len(set(row)) == 15 for row in graph.indices.tolist())
    assert not (graph.indices == np.arange(len(X))[:, None]).any()


def test_cells_smaller_than_k_use_further_cells(rng):
    X = rng.standard_normal((2000, 6)).astype(np.float32)
    found = Cells(X, X, 1).search(300, 1)  # a cell contains about 7 points
    assert all(len(np.unique(row)) == 300 for row in found)
    assert not (found == np.arange(2000)[:, None]).any()


def test_cells_find_all_other_points(rng):
    X = rng.standard_normal((400, 6)).astype(np.float32)
    found, recall = Cells(X, X, 2).search_with_recall(399, 0.5)
    assert recall == 1.0
    assert_array_equal(np.sort(found), [np.delete(np.arange(400), i) for i in range(400)])


def test_cells_of_duplicated_points(rng):
    X = np.repeat(rng.standard_normal((40, 6)), 50, axis=0).astype(np.float32)
    found = Cells(X, X, 2).search(49, 1)
    assert_array_equal(found // 50, np.repeat(np.arange(2000)[:, None] // 50, 49, axis=1))
    assert not (found == np.arange(2000)[:, None]).any()


def test_ranks_of_cells_are_the_best_ranks_of_their_members(rng):
    X = rng.standard_normal((1500, 5)).astype(np.float32)
    centres = Centres(X, rng.permutation(1500), 90, 2)
    listed = centres.nearest(X, 20)
    count, members = len(centres.points), Members(np.ascontiguousarray(listed[:, 0]), len(centres.points))
    ranks = np.empty((count, count), np.int32)
    _core.cell_ranks(centres.points, listed, members.csr, members.starts, np.arange(count, dtype=np.int32), ranks, 2)
    for cell in range(0, count, 7):
        expected = np.empty(count, np.int32)
        expected[np.argsort(squared(centres.points[cell : cell + 1], centres.points)[0])] = 20 + np.arange(count)
        for rank in range(19, -1, -1):
            expected[listed[listed[:, 0] == cell, rank]] = rank
        assert_array_equal(ranks[cell], expected)


def test_centres_are_means_and_nearest_cells_are_sorted(rng):
    X = rng.standard_normal((3000, 6)).astype(np.float32)
    centres = Centres(X, rng.permutation(3000), 150, 2)
    listed = centres.nearest(X, LISTED)
    d2 = squared(X, centres.points)
    assert_allclose(np.take_along_axis(d2, listed, axis=1), np.sort(d2, axis=1)[:, :LISTED], rtol=1e-3)
    spread = d2.min(axis=1).mean()
    assert spread < 0.9 * squared(X, X[rng.permutation(3000)[: len(centres.points)]]).min(axis=1).mean()


def test_group_means_leave_empty_groups(rng):
    X, means = rng.standard_normal((50, 3)).astype(np.float32), np.full((3, 3), 7, np.float32)
    group = np.where(np.arange(50) < 20, 0, 2)
    _core.group_means(X, Members(group, 3).csr, means, 2)
    assert_allclose(means, [X[:20].mean(axis=0), [7, 7, 7], X[20:].mean(axis=0)], rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queries": np.zeros((12, 4), np.float32)}, "queries must have as many columns as the points"),
        ({"ends": np.array([0, 6])}, "ends must have one element more than there are groups"),
        ({"ends": np.array([0, 7, 6])}, "ends must not be negative nor decrease"),
        ({"ends": np.array([0, 6, 999])}, "ends must not exceed the number of points"),
        ({"first": 5, "last": 2}, "first and last must be entries of members"),
        ({"self": np.zeros(3, np.int32)}, "self must be empty or have one element per query"),
        ({"out": np.zeros((3, 3), np.int32)}, "out must have one row per query"),
        ({"out": np.zeros((12, 13), np.int32)}, "a query has too few distances"),
    ],
)
def test_nearest_in_groups_checks_its_arguments(changes, message):
    from support.core_calls import cell_calls

    arguments = next(arguments for name, arguments in cell_calls() if name == "nearest_in_groups")
    with pytest.raises(ValueError, match=message):
        _core.nearest_in_groups(**{**arguments, **changes})

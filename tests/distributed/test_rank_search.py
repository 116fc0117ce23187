"""The neighbour search over ranks: the same bytes for any number of them, and the neighbours found on one machine."""

import tempfile
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from support import rank_tables
from support.rank_tables import Table, by_row, mixture, on_ranks, search_digest
from support.thread_ranks import ThreadGroup

from equipoise.distributed import batch_search, exchange, neighbors, run_ranks
from equipoise.distributed.batch_search import sorted_by_distance
from equipoise.distributed.group import SingleProcess
from equipoise.distributed.neighbors import Resources, find_neighbors, search_memory
from equipoise.distributed.partition import Partition
from equipoise.neighbors.search import nearest_neighbors

pytestmark = pytest.mark.ranks
SIZES = (1, 2, 3, 4, 16)
METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation")


@pytest.fixture
def in_cells(monkeypatch):
    """Search cells also in small tables."""
    monkeypatch.setattr(neighbors, "EXACT_WORK", 0.0)


def search(size, X, k, metric="euclidean", **settings):
    return on_ranks(size, lambda group: find_neighbors(group, Table(X), k, metric, **settings))


@pytest.mark.parametrize("metric", METRICS)
def test_bytes_are_the_same_for_any_number_of_ranks_and_threads(in_cells, metric):
    X = mixture(3000, 12)
    expected = search_digest(search(1, X, 15, metric))
    assert 0.99 <= expected[1] < 1
    assert {search_digest(search(size, X, 15, metric)) for size in SIZES[1:]} == {expected}
    assert search_digest(search(2, X, 15, metric, resources=Resources(n_threads=3))) == expected


@pytest.mark.parametrize("metric", METRICS)
def test_small_tables_are_searched_exactly(metric):
    X = load_digits().data
    single = nearest_neighbors(X, 20, metric)
    expected = search_digest(search(1, X, 20, metric))
    assert expected[1] == 1.0
    for size in SIZES:
        parts = search(size, X, 20, metric)
        assert search_digest(parts) == expected
        assert_allclose(by_row(parts)[1], np.sort(single.distances, axis=1), rtol=1e-12, atol=1e-14)
        assert_array_equal(np.concatenate([part.ids for part in parts]), np.arange(len(X)))


@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_in_cells_agree_with_the_search_on_one_machine_up_to_the_recall(in_cells, metric):
    X = mixture(4000, 10)
    single = nearest_neighbors(X, 12, metric)  # exact
    parts = search(3, X, 12, metric, min_recall=0.97)
    indices, distances = by_row(parts)
    shared = [np.isin(found, exact).mean() for found, exact in zip(indices, single.indices, strict=True)]
    assert np.mean(shared) > 0.96
    assert parts[0].recall >= 0.97
    in_single = {
        (i, j): d for i in range(0, 4000, 40) for j, d in zip(single.indices[i], single.distances[i], strict=True)
    }
    for i in range(0, 4000, 40):
        for j, d in zip(indices[i], distances[i], strict=True):
            assert in_single.get((i, j), d) == pytest.approx(d, rel=1e-12)


def test_a_recall_of_one_finds_the_nearest_of_the_sample(in_cells):
    X = mixture(2000, 8)
    parts = search(2, X, 10, min_recall=1.0)
    assert parts[0].recall == 1.0
    exact = np.sort(nearest_neighbors(X, 10).distances, axis=1)
    assert (np.abs(by_row(parts)[1] - exact) < 1e-12).mean() > 0.995


@pytest.mark.parametrize("name", ["BATCH", "ROUND", "LISTED_ROWS", "MEASURED"])
def test_sizes_of_batches_and_rounds_do_not_change_the_bytes(in_cells, monkeypatch, name):
    X = mixture(2500, 9)
    expected = search_digest(search(1, X, 11))
    monkeypatch.setattr(exchange if name == "ROUND" else batch_search, name, 100 if name == "LISTED_ROWS" else 20_000)
    assert {search_digest(search(size, X, 11)) for size in (1, 3)} == {expected}


def test_duplicates_fill_cells_that_several_ranks_own_and_ties_go_to_the_lower_position(in_cells):
    X = mixture(3000, 6)
    X[np.random.default_rng(0).permutation(3000)[:1400]] = 1.0
    expected = search_digest(search(1, X, 7))
    assert {search_digest(search(size, X, 7)) for size in SIZES[1:]} == {expected}
    parts = search(4, X, 7)
    assert sum((part.distances == 0).all(axis=1).sum() for part in parts) == 1400
    for part in parts:
        equal = part.distances[:, 1:] == part.distances[:, :-1]
        assert (np.diff(part.indices, axis=1)[equal] > 0).all()
        assert (np.diff(part.distances, axis=1) >= 0).all()


@pytest.mark.parametrize(("dtype", "stored"), [(np.float16, np.float32), (np.float32, np.float32), (np.int16, float)])
def test_rows_are_stored_by_position(in_cells, dtype, stored):
    X = np.rint(10 * mixture(1500, 5)).astype(dtype)
    for size in (1, 3):
        for part in search(size, X, 4):
            assert part.rows.dtype == stored
            assert_array_equal(part.rows, X[part.ids])
            assert len(part.ids) == part.partition.count


def test_ranks_read_disjoint_ranges_of_whole_blocks_three_times(in_cells):
    X = mixture(3000, 5)
    tables = [Table(X) for _ in range(3)]
    on_ranks(3, lambda group: find_neighbors(group, tables[group.rank], 4))
    for rank, table in enumerate(tables):
        own = Partition(3000, 3, rank).own
        assert table.read_ranges == [(own.start, own.stop)] * 3


def test_near_cells_are_mostly_on_the_same_rank(in_cells, monkeypatch):
    X, sent = mixture(4000, 16, classes=30), []
    swap = ThreadGroup._swap

    def counted(group, arrays, received, counts):
        sent.append(counts[group.rank].sum())
        swap(group, arrays, received, counts)

    monkeypatch.setattr(ThreadGroup, "_swap", counted)
    search(4, X, 5)
    assert sum(sent) < 2.2 * X.nbytes  # 3/4 of the rows are sent to their owners


def test_rows_in_a_temporary_file_have_the_same_bytes_and_leave_no_file(in_cells, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    X = mixture(2000, 7)
    expected = search_digest(search(1, X, 6))
    parts = search(2, X, 6, resources=Resources(row_memory=1000))
    assert search_digest(parts) == expected
    assert isinstance(parts[0].rows.base, np.memmap)
    assert list(tmp_path.iterdir()) == []
    X[1999, 3] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 1999, column 3"):
        search(2, X, 6, resources=Resources(row_memory=1000))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("n", "D", "k", "dtype"), [(3000, 20, 15, np.float64), (12_000, 50, 30, np.float64), (12_000, 60, 15, np.float32)]
)
def test_stated_memory_is_an_upper_bound(monkeypatch, n, D, k, dtype):
    monkeypatch.setattr(neighbors, "EXACT_WORK", 1e9)
    table = Table(mixture(n, D).astype(dtype))
    find_neighbors(SingleProcess(), Table(table.X[:600]), k)  # imports
    tracemalloc.start()
    try:
        find_neighbors(SingleProcess(), table, k)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The bound counts the rows whose distances are measured three times, since neighbours may be other rows than the
    # queries. In small tables they are the same rows, so that the bound is loosest for 3,000 rows: 2.65 times the peak.
    assert peak <= search_memory(n, D, k, 1, np.dtype(dtype).itemsize) <= 2.7 * peak


def test_memory_falls_with_the_number_of_ranks():
    needed = [search_memory(10_000_000, 50, 90, size) for size in (1, 2, 4, 16)]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > 8 * needed[3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "manhattan"}, "metric='manhattan' is not supported over ranks; choose from euclidean, l2,"),
        ({"metric": len}, "is not supported over ranks"),
        ({"k": 300}, "k must be an integer from 1 to n_samples - 1 = 299, got 300"),
        ({"min_recall": 2}, "min_recall must be a finite number between 0 and 1, got 2"),
        ({"resources": Resources(n_threads=0)}, "n_threads must be an integer from 1"),
        ({"resources": Resources(row_memory=-1)}, "row_memory must be a number of bytes or None, got -1"),
        ({"source": Table(np.zeros((5, 0)))}, r"the source of rows has the shape \(5, 0\); it must have at least two"),
        ({"source": Table(np.zeros((5, 2), complex))}, "has the dtype complex128; it must have real numbers"),
    ],
)
def test_bad_arguments_are_refused_before_rows_are_read(arguments, message):
    table = Table(mixture(300, 3))
    with pytest.raises(ValueError, match=message):
        find_neighbors(SingleProcess(), **{"source": table, "k": 3, **arguments})
    assert table.read_ranges == []


def test_tables_with_too_many_rows_are_refused():
    table = Table(np.zeros((2, 2)))
    table.shape = (2**31, 2)
    with pytest.raises(ValueError, match=r"has 2,147,483,648 rows; at most 2\^31 - 1 are supported"):
        find_neighbors(SingleProcess(), table, 3)


def test_different_arguments_on_different_ranks_are_refused():
    X = mixture(300, 3)
    with pytest.raises(ValueError, match="the table, k, metric or min_recall differs between ranks"):
        on_ranks(2, lambda group: find_neighbors(group, Table(X), 3 + group.rank))


@pytest.mark.parametrize(
    ("metric", "row", "message"),
    [
        ("cosine", 0.0, "row 700 is zero, so metric='cosine' is not defined for it"),
        ("correlation", 2.0, "row 700 is constant, so metric='correlation' is not defined for it"),
        ("euclidean", np.inf, "X contains inf at row 700, column 0; values must be finite.*drop such rows"),
        ("euclidean", 1e200, "X contains 1e[+]200 at row 700, column 0; .*rescale the column"),
    ],
)
def test_bad_rows_are_named(metric, row, message):
    X = mixture(1000, 4)
    X[700] = row
    with pytest.raises(ValueError, match=message):
        search(2, X, 3, metric)


def test_a_source_that_returns_another_shape_is_refused():
    table = Table(mixture(300, 3))
    table.read = lambda start, stop: np.zeros((1, 3))
    with pytest.raises(ValueError, match=r"the source of rows returned an array of shape \(1, 3\) for 300 rows"):
        find_neighbors(SingleProcess(), table, 3)


@pytest.mark.slow
def test_processes_that_communicate_through_gloo_give_the_bytes_of_one_rank(in_cells):
    pytest.importorskip("torch")
    expected = list(search_digest(search(1, mixture(3000, 12), 15)))
    assert run_ranks(f"{rank_tables.__file__}:search_in_cells", 2, [3000, 12, 15]) == [expected, expected]


@pytest.mark.slow
def test_20000_rows_in_cells_reach_the_recall_with_the_same_bytes(monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_WORK", 1e9)
    X = mixture(20_000, 30, classes=40).astype(np.float32)
    expected = search_digest(search(1, X, 30))
    assert {search_digest(search(size, X, 30)) for size in (2, 3, 16)} == {expected}
    found, distances = by_row(search(2, X, 30))
    rows = np.arange(0, 20_000, 97)
    d = np.linalg.norm(X[rows, None].astype(np.float64) - X[found[rows]], axis=2)
    assert_allclose(distances[rows], d, rtol=1e-12)
    exact = nearest_neighbors(X, 30)  # all pairs
    assert np.mean([np.isin(found[i], exact.indices[i]).mean() for i in rows]) > 0.985


def test_neighbours_are_sorted_by_distance_and_equal_ones_by_position():
    rng = np.random.default_rng(0)
    d2 = rng.integers(4, size=(500, 12)).astype(np.float64)
    found = np.argsort(rng.random((500, 40)), axis=1)[:, :12].astype(np.int32)
    near, sorted_d2 = sorted_by_distance(found, d2)
    for row in range(500):
        expected = sorted(zip(d2[row], found[row], strict=True))
        assert list(zip(sorted_d2[row], near[row], strict=True)) == expected

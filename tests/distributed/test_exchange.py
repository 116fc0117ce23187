"""Rows sent to their owners and fetched from them, and the order and reach of cells over ranks."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.rank_tables import mixture, on_ranks

from equipoise import _core
from equipoise.distributed import exchange
from equipoise.distributed.cell_order import RankCells, near_order, position_rows
from equipoise.distributed.cell_reach import cells_within
from equipoise.distributed.group import SingleProcess
from equipoise.distributed.partition import Partition
from equipoise.neighbors.panels import Members

pytestmark = pytest.mark.ranks
SIZES = (1, 2, 3, 8)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("round_bytes", [2000, 2**24])
def test_rows_arrive_in_the_order_of_ranks_and_of_their_senders(monkeypatch, size, round_bytes):
    monkeypatch.setattr(exchange, "ROUND", round_bytes)

    def work(group):
        m = 7 * group.rank  # rank 0 sends nothing
        to = np.arange(m) % group.size
        return exchange.send(group, to, [np.full(m, group.rank), np.arange(2.0 * m).reshape(m, 2)])

    for rank, (source, values) in enumerate(on_ranks(size, work)):
        expected = [(s, i) for s in range(size) for i in range(7 * s) if i % size == rank]
        assert_array_equal(source, np.array([s for s, _ in expected], int))
        assert_array_equal(values, np.array([(2 * i, 2 * i + 1) for _, i in expected]).reshape(-1, 2))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("round_bytes", [2000, 2**24])
def test_fetched_rows_are_those_at_the_positions(monkeypatch, size, round_bytes):
    monkeypatch.setattr(exchange, "ROUND", round_bytes)
    X = mixture(1500, 3)

    def work(group):
        partition = Partition.of(group, 1500)
        wanted = np.flatnonzero(np.random.default_rng(group.rank).random(1500) < 0.1 * group.rank)
        return np.array_equal(exchange.fetch(group, partition, X[partition.own], wanted), X[wanted])

    assert all(on_ranks(size, work))


@pytest.mark.parametrize("size", SIZES)
def test_positions_are_sorted_by_cell_and_then_by_row(size):
    cell = np.random.default_rng(0).integers(0, 9, 2000).astype(np.int32)
    cell[cell == 4] = 5  # an empty cell

    def work(group):
        return position_rows(group, cell[Partition.of(group, 2000).own], 9)

    parts = on_ranks(size, work)
    positions = np.concatenate([part[0] for part in parts])
    assert_array_equal(np.argsort(positions), np.argsort(cell, kind="stable"))
    for _, starts in parts:
        assert_array_equal(starts, np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=9))]))


def test_order_of_centres_keeps_near_ones_together():
    points = mixture(600, 5, classes=20).astype(np.float32)
    order = near_order(points)
    assert_array_equal(np.sort(order), np.arange(600))

    def step(points):
        return np.linalg.norm(np.diff(points, axis=0), axis=1).mean()

    assert step(points[order]) < 0.6 * step(points)
    assert_array_equal(np.sort(near_order(np.zeros((5, 2)))), np.arange(5))


def test_cells_are_numbered_by_their_order():
    cells = RankCells(SingleProcess(), mixture(2000, 6).astype(np.float32), 40, 1)
    nearest = cells.nearest(cells.points, 3)
    assert_array_equal(nearest[:, 0], np.arange(cells.count))
    assert cells.nearest(cells.points[:0], 3).shape == (0, 3)


@pytest.mark.parametrize(("count", "least"), [(1, 1), (3, 1), (3, 400), (40, 10), (2, 5000)])
def test_cells_within_reach_are_those_of_the_compiled_search(count, least):
    X = mixture(2000, 6).astype(np.float32)
    cells = RankCells(SingleProcess(), X, 40, 1)
    listed = cells.nearest(X, 8)
    members = Members(np.ascontiguousarray(listed[:, 0]), cells.count)
    lists = cells.points, listed, members.csr, members.starts
    ranks = np.empty((cells.count, cells.count), np.int32)
    _core.cell_ranks(*lists, np.arange(cells.count, dtype=np.int32), ranks, 1)
    indptr, indices = np.empty(cells.count + 1, np.int64), np.empty(0, np.int32)
    _core.cells_in_reach(*lists, count, least, indptr, indices, 1)
    indices = np.empty(indptr[-1], np.int32)
    _core.cells_in_reach(*lists, count, least, indptr, indices, 1)
    for cell in np.flatnonzero(members.sizes):
        expected = indices[indptr[cell] : indptr[cell + 1]]
        assert_array_equal(cells_within(ranks[cell], members.sizes, count, least), expected)

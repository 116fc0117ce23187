"""Rows divided among ranks, and sums over them that do not depend on the number of ranks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.rank_tables import on_ranks

from equipoise.distributed.group import SingleProcess
from equipoise.distributed.partition import MOST_BLOCKS, SMALLEST_BLOCK, Partition

SIZES = (1, 2, 3, 4, 16)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1797, 100_000, 5_000_000, 3_000_000_000])
@pytest.mark.parametrize("size", SIZES)
def test_shares_cover_all_rows_and_are_cut_at_blocks(n, size):
    partition = Partition(n, size)
    assert partition.block & (partition.block - 1) == 0
    assert partition.block >= SMALLEST_BLOCK
    assert partition.n_blocks <= MOST_BLOCKS
    assert partition.bounds[0] == 0
    assert partition.bounds[-1] == n
    assert (partition.bounds[1:-1] % partition.block).tolist() == [0] * (size - 1) or n < size * partition.block
    shares = np.diff(partition.bounds)
    assert shares.min() >= 0
    assert shares.max() - shares.min() <= partition.block
    assert partition.block == Partition(n, 1).block


@pytest.mark.parametrize("size", SIZES)
def test_owners_and_blocks_agree_with_bounds(size):
    n = 1797
    ranks = [Partition(n, size, rank) for rank in range(size)]
    owner = ranks[0].owner(np.arange(n))
    for rank, partition in enumerate(ranks):
        assert_array_equal(np.flatnonzero(owner == rank), np.arange(n)[partition.own])
        rows = [np.arange(n)[rows] for _, rows in ranks[0].blocks(rank)]
        assert_array_equal(np.concatenate([np.empty(0, int), *rows]), np.arange(n)[partition.own])
    assert [b for rank in range(size) for b, _ in ranks[0].blocks(rank)] == list(range(ranks[0].n_blocks))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3)])
def test_sums_means_and_extremes_have_the_same_bytes_for_any_number_of_ranks(rng, shape):
    n = 5000
    x = rng.standard_normal((n, *shape)) * 10 ** rng.uniform(-8, 8, (n, *shape))

    def work(group):
        partition = Partition.of(group, n)
        own = x[partition.own]
        return [f(group, own) for f in (partition.sum_rows, partition.mean, partition.minimum, partition.maximum)]

    expected = on_ranks(1, work)[0]
    assert_allclose(expected[0], x.sum(axis=0), rtol=1e-9)
    assert_array_equal(expected[2], x.min(axis=0))
    assert_array_equal(expected[3], x.max(axis=0))
    for size in SIZES:
        for found in on_ranks(size, work):
            assert [a.tobytes() for a in found] == [a.tobytes() for a in expected]


def test_memory_layout_does_not_change_a_sum(rng):
    x = rng.standard_normal((3000, 4))
    partition = Partition(3000, 1)
    group = SingleProcess()
    expected = partition.sum_rows(group, x)
    assert partition.sum_rows(group, np.asfortranarray(x)).tobytes() == expected.tobytes()
    assert partition.sum_rows(group, x[::-1][::-1]).tobytes() == expected.tobytes()


def test_extremes_of_integers_on_ranks_without_rows():
    def work(group):
        partition = Partition.of(group, 300)
        own = np.arange(300)[partition.own]
        return int(partition.minimum(group, own)), int(partition.maximum(group, own))

    assert on_ranks(4, work) == [(0, 299)] * 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), "n must be an integer of at least 1, got 0"),
        ((5, 0), "size must be an integer of at least 1, got 0"),
        ((5, 2, -1), "rank must be an integer of at least 0, got -1"),
        ((5, 2, 2), "rank=2 is not a rank of 2; the ranks are 0 to 1"),
    ],
)
def test_bad_partitions_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Partition(*arguments)


def test_arrays_of_another_length_are_refused():
    group = SingleProcess()
    with pytest.raises(ValueError, match=r"rank 0 owns 10 of 10 rows, but the array has the shape \(9,\)"):
        Partition(10, 1).sum_rows(group, np.zeros(9))

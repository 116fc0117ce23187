"""Principal components over ranks: the same bytes for any number of ranks, and those of NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from support.rank_tables import Table, mixture, on_ranks

from equipoise.distributed.exact_sum import ExactSum
from equipoise.distributed.group import SingleProcess
from equipoise.distributed.neighbors import find_neighbors
from equipoise.distributed.partition import Partition
from equipoise.distributed.principal import Principal, principal_axes, principal_map
from equipoise.linalg.pca import JITTER, principal_components

pytestmark = pytest.mark.ranks
SIZES = (2, 3, 16)


def own_map(group, X, d, seed=0):
    partition = Partition.of(group, len(X))
    return principal_map(group, partition, X[partition.own], d, seed)


@pytest.mark.parametrize("d", [1, 3])
def test_map_has_the_same_bytes_for_any_number_of_ranks(d):
    X = load_digits().data
    expected = np.concatenate(on_ranks(1, lambda group: own_map(group, X, d)))
    for size in SIZES:
        assert np.concatenate(on_ranks(size, lambda group: own_map(group, X, d))).tobytes() == expected.tobytes()


def test_map_is_that_of_a_single_process_up_to_jitter():
    X = load_digits().data
    Y = own_map(SingleProcess(), X, 2)
    noise = Y - principal_components(X, 2, None)
    assert np.abs(noise).max() < 6 * JITTER
    assert noise.std() == pytest.approx(JITTER, rel=0.05)
    assert (own_map(SingleProcess(), X, 2, seed=1) != Y).all()


def test_components_beyond_the_rank_and_constant_tables_are_only_jitter():
    X = np.outer(np.arange(600.0), [1.0, 2.0])
    Y = own_map(SingleProcess(), X, 3)
    assert Y[:, 0].std() == pytest.approx(1, rel=0.01)
    assert_allclose(Y[:, 1:].std(axis=0), JITTER, rtol=0.2)
    assert_allclose(own_map(SingleProcess(), np.ones((600, 2)), 2).std(axis=0), JITTER, rtol=0.2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reduced_table_has_the_components_of_numpy_and_the_same_bytes(dtype):
    X = load_digits().data.astype(dtype)
    centered = X.astype(float) - X.mean(axis=0, dtype=float)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)

    def work(group):
        reduced = Principal(group, Table(X), 5, n_threads=1 + group.rank)
        return reduced.read(100, 900), reduced.shape, reduced.dtype

    expected, shape, stored = on_ranks(1, work)[0]
    assert (shape, stored) == ((1797, 5), dtype)
    assert_allclose(
        np.abs(expected), np.abs(centered[100:900] @ axes[:5].T), atol=1e-4 if dtype == np.float32 else 1e-10
    )
    for size in (2, 3):
        assert {rows.tobytes() for rows, _, _ in on_ranks(size, work)} == {expected.tobytes()}


def test_rows_of_a_reduced_table_do_not_depend_on_the_range_that_is_read():
    reduced = Principal(SingleProcess(), Table(load_digits().data), 7)
    rows = np.vstack([reduced.read(i, min(i + 13, 600)) for i in range(0, 600, 13)])
    assert rows.tobytes() == reduced.read(0, 600).tobytes()


def test_axes_have_variances_and_the_sign_rule():
    X = mixture(2000, 6)
    found = principal_axes(SingleProcess(), Table(X), 6)
    variances = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    assert_allclose(found.variances * found.scale**2, variances, rtol=1e-10)
    assert (found.axes[np.abs(found.axes).argmax(axis=0), np.arange(6)] > 0).all()
    assert_allclose(found.scores(X).var(axis=0), variances, rtol=1e-10)


def test_each_rank_reads_its_rows_twice_to_reduce_a_table():
    tables = [Table(mixture(2000, 6)) for _ in range(2)]
    on_ranks(2, lambda group: Principal(group, tables[group.rank], 2))
    for rank, table in enumerate(tables):
        own = Partition(2000, 2, rank).own
        assert table.read_ranges == [(own.start, own.stop)] * 2


def test_neighbours_of_a_reduced_table():
    X = load_digits().data

    def work(group):
        return find_neighbors(group, Principal(group, Table(X), 10), 5).indices

    expected = on_ranks(1, work)[0]
    assert_array_equal(np.concatenate(on_ranks(3, work)), expected)


def test_exact_sums_do_not_depend_on_order_or_size():
    rng = np.random.default_rng(0)
    terms = rng.standard_normal((50, 40)) * 10 ** rng.uniform(-12, 0, (50, 40))
    bound = np.abs(terms).sum(axis=0).max()

    def total(terms):
        result = ExactSum((40,), bound)
        for term in terms:
            result.add(term)
        return result.result(SingleProcess())

    expected = total(terms)
    assert total(terms[rng.permutation(50)]).tobytes() == expected.tobytes()
    assert_allclose(expected, terms.sum(axis=0), rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("m", [0, 7, 2.0])
def test_numbers_of_components_out_of_range_are_refused(m):
    with pytest.raises(
        ValueError, match=r"is out of range for a table of shape \(300, 6\); use an integer from 1 to 6"
    ):
        Principal(SingleProcess(), Table(mixture(300, 6)), m)

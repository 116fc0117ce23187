"""Affinities over ranks: the same bytes for any number of ranks, and the matrices of a single process."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from support.rank_tables import Table, mixture, on_ranks

from equipoise.affinities import fuzzy, locally_linear, perplexity
from equipoise.distributed import exchange, neighbors, rank_matrix
from equipoise.distributed.affinities import fuzzy_union_of_ranks, joint_of_ranks
from equipoise.distributed.neighbors import find_neighbors
from equipoise.distributed.reconstruction import lle_matrix_of_ranks, weights_of_ranks
from equipoise.kernels import Gaussian
from equipoise.neighbors.vectors import Graph

pytestmark = pytest.mark.ranks
SIZES = (2, 3)
PERPLEXITIES = np.array([8.0, 12.0])


@pytest.fixture(scope="module")
def digits():
    return load_digits().data  # two blocks of rows


def found_by(group, X, k=20):
    return find_neighbors(group, Table(X), k)


def joint(group, found):
    return joint_of_ranks(group, found, PERPLEXITIES)


def union(group, found):
    return fuzzy_union_of_ranks(group, found, 15)


def reconstruction(group, found):
    return lle_matrix_of_ranks(group, found.partition, weights_of_ranks(group, found))


def kernel_reconstruction(group, found):
    scale = 2 * np.square(found.distances).mean(axis=1)
    return lle_matrix_of_ranks(
        group, found.partition, weights_of_ranks(group, found, kernel=Gaussian().value, scale=scale)
    )


MATRICES = (joint, union, reconstruction, kernel_reconstruction)


def squared(found):
    return Graph(found.indices.astype(np.int32), found.distances.copy()).into_squared(found.partition.n)


def single(matrix, found):
    """Return the matrix of a single process for the same neighbours."""
    if matrix is joint:
        return perplexity.joint(perplexity.conditional(squared(found), PERPLEXITIES, np.float32, 1))
    if matrix is union:
        return fuzzy.fuzzy_union(fuzzy.memberships(squared(found), 15, np.float32, 1))
    options = {}
    if matrix is kernel_reconstruction:
        options = {"kernel": Gaussian().value, "scale": 2 * np.square(found.distances).mean(axis=1)}
    return locally_linear.lle_matrix(locally_linear.lle_weights(found.rows, found.indices, **options))


def run(size, X, matrix):
    """Return the neighbours and the matrix of all ranks, and the matrix of each rank."""

    def work(group):
        found = found_by(group, X)
        return found, matrix(group, found)

    parts = on_ranks(size, work)
    return parts[0][0], sparse.vstack([M.own for _, M in parts]), [M for _, M in parts]


def bytes_of(M):
    return M.data.tobytes(), M.indices.tobytes(), M.indptr.tobytes()


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("cells", [False, True])
def test_matrices_have_the_bytes_of_a_single_process_for_any_number_of_ranks(monkeypatch, digits, matrix, cells):
    if cells:
        monkeypatch.setattr(neighbors, "EXACT_WORK", 0.0)
    found, expected, alone = run(1, digits, matrix)
    assert (single(matrix, found) != expected).nnz == 0
    assert single(matrix, found).nnz == expected.nnz
    assert expected.has_sorted_indices
    for size in (*SIZES, *((4, 16) if matrix is joint else ())):
        _, M, parts = run(size, digits, matrix)
        assert bytes_of(M) == bytes_of(expected)
        assert {part.total for part in parts} == {alone[0].total}
        assert np.concatenate([part.row_sums for part in parts]).tobytes() == alone[0].row_sums.tobytes()


def test_joint_probabilities_sum_to_one_and_are_symmetric(digits):
    _, P, parts = run(3, digits, joint)
    assert parts[0].total == pytest.approx(1, rel=1e-6)
    assert abs(P - P.T).max() == 0
    assert P.dtype == np.float32
    assert_allclose(np.concatenate([part.row_sums for part in parts]), np.asarray(P.sum(axis=1)).ravel(), rtol=1e-5)


def test_rows_of_the_locally_linear_matrix_sum_to_zero(digits):
    _, M, parts = run(3, digits, reconstruction)
    assert_allclose(np.asarray(M.sum(axis=1)).ravel(), 0, atol=1e-12)
    assert parts[0].total == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("matrix", MATRICES)
def test_sizes_of_rounds_do_not_change_the_bytes(monkeypatch, matrix):
    X = mixture(2500, 5)
    _, expected, _ = run(1, X, matrix)
    monkeypatch.setattr(exchange, "ROUND", 3000)
    monkeypatch.setattr(rank_matrix, "ROUND", 3000)
    monkeypatch.setattr("equipoise.distributed.reconstruction.ROUND", 3000)
    _, M, _ = run(3, X, matrix)
    assert bytes_of(M) == bytes_of(expected)


def test_duplicates_are_reported_once_with_the_row_of_the_table():
    X = mixture(1000, 4)
    X[300:340] = X[300]

    def work(group):
        with warnings.catch_warnings():
            warnings.simplefilter("error" if group.rank else "ignore")
            return joint_of_ranks(group, found_by(group, X), np.array([5.0])).own

    assert sum(P.nnz for P in on_ranks(1, work)) > 0
    with pytest.warns(UserWarning, match=r"40 rows \(the first is row 300\) have more neighbours at the smallest"):
        on_ranks(1, lambda group: joint_of_ranks(group, found_by(group, X), np.array([5.0])))


def test_too_few_neighbours_are_refused():
    X = mixture(300, 3)
    with pytest.raises(ValueError, match="perplexity=30 needs more than the 20 neighbours found for each row"):
        on_ranks(1, lambda group: joint_of_ranks(group, found_by(group, X), np.array([30.0])))
    with pytest.raises(ValueError, match="n_neighbors=30 needs 29 neighbours of each row, but 20 were found"):
        on_ranks(1, lambda group: fuzzy_union_of_ranks(group, found_by(group, X), 30))


def test_weights_that_are_not_finite_are_refused():
    def work(group):
        found = found_by(group, mixture(300, 3))
        W = weights_of_ranks(group, found)
        W.data[5] = np.nan
        return lle_matrix_of_ranks(group, found.partition, W)

    with pytest.raises(ValueError, match="the weights of the neighbours are not finite: reg is too small"):
        on_ranks(1, work)


def test_matrix_describes_itself(digits):
    found, _, parts = run(2, digits, joint)
    count = found.partition.count
    assert repr(found) == f"<20 neighbours of each of {count} of 1797 points, recall 1>"
    assert repr(parts[0]) == f"<{count} of 1797 rows of a matrix, {parts[0].own.nnz} entries>"
    assert_array_equal(parts[0].own.shape, (1024, 1797))

"""Unusual but valid input gives good maps: few points, duplicates, constants, extreme scales, other containers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph
from support.cases import misaligned

import equipoise as eq
from equipoise.data.checks.table_input import check_table
from equipoise.methods import METHODS, SphericalSNE

every_method = pytest.mark.parametrize("Method", METHODS, ids=lambda M: M.__name__)

X, LABELS = make_blobs(60, 4, centers=3, random_state=1)
INTEGERS = np.round(X).astype(np.int64)


def embed(Method, data, **parameters):
    method = Method(random_state=0, **parameters).fit(data)
    assert np.isfinite(method.embedding_).all() and np.isfinite(method.loss_curve_).all()
    if Method is SphericalSNE:
        np.testing.assert_allclose(np.linalg.norm(method.embedding_, axis=1), 1, atol=1e-5)
    return method


def collapsed_loss(method, data):
    """Return the loss of the map with all points at one position."""
    problem = method.problem(data)
    return problem.loss(np.ones_like(problem.Y0))


def separation(Y, labels):
    """Return the smallest distance between two classes over the largest distance within one."""
    D = pairwise_distances(Y)
    same = labels[:, None] == labels
    with np.errstate(divide="ignore"):  # duplicates may coincide in the map
        return D[~same].min() / D[same].max()


# Very few points


@every_method
@pytest.mark.parametrize("n", range(2, 11))
def test_few_points_give_a_good_map(Method, n):
    data = np.random.RandomState(n).standard_normal((n, 4))
    method = embed(Method, data)
    collapsed = collapsed_loss(method, data)
    # Without early exaggeration every method gets below 0.35; at n = 2 there is one pair, and Q = P in every map.
    assert method.loss_ < 0.5 * collapsed + 1e-6


@every_method
def test_pairs_stay_together(Method):
    data = np.array([[0.0, 0], [0.1, 0], [10, 0], [10.1, 0], [0, 10], [0.1, 10]])
    Y = embed(Method, data, perplexity=1.5).embedding_
    nearest = pairwise_distances(Y) + 1e9 * np.eye(6)
    assert nearest.argmin(axis=1).tolist() == [1, 0, 3, 2, 5, 4]


# Degenerate columns and rows


@every_method
def test_constant_columns_do_not_change_the_map(Method):
    padded = np.hstack([np.full((60, 1), 7.0), X, np.zeros((60, 2))])
    plain, constant = embed(Method, X, n_iter=20), embed(Method, padded, n_iter=20)
    np.testing.assert_allclose(constant.affinities_, plain.affinities_, rtol=1e-4, atol=1e-9)
    scale = np.abs(plain.embedding_).max()
    np.testing.assert_allclose(constant.embedding_, plain.embedding_, atol=1e-3 * scale)


@every_method
def test_one_informative_column_gives_a_good_map(Method):
    data = np.zeros((60, 3))
    data[:, 1] = X[:, 0]
    method = embed(Method, data)
    assert method.loss_ < 0.5 * collapsed_loss(method, data)


@every_method
def test_identical_rows_warn_and_share_affinity(Method):
    data = np.full((20, 4), 3.0)
    with pytest.warns(UserWarning, match=r"20 rows .*row 0\b.*duplicates"):
        method = embed(Method, data)
    off = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(method.affinities_[off], method.affinities_[0, 1], rtol=1e-5)


@every_method
def test_many_duplicates_keep_groups_separate(Method):
    data, labels = np.repeat(10 * np.eye(5, 4), 12, axis=0), np.repeat(np.arange(5), 12)
    with pytest.warns(UserWarning, match=r"60 rows .*duplicates.* perplexity 5\b"):
        method = embed(Method, data, perplexity=5)
    assert separation(method.embedding_, labels) > 1


@every_method
def test_one_far_outlier_does_not_spoil_the_map(Method):
    data = np.vstack([X, np.full((1, 4), 1e6)])
    method = embed(Method, data, perplexity=15)
    assert method.loss_ < 0.5 * collapsed_loss(method, data)
    assert separation(method.embedding_[:60], LABELS) > 0.2


# Scale


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
@every_method
def test_scale_of_the_data_does_not_matter(Method, scale):
    plain, scaled = embed(Method, X, n_iter=20), embed(Method, X * scale, n_iter=20)
    np.testing.assert_allclose(scaled.affinities_, plain.affinities_, rtol=1e-4, atol=1e-9)
    size = np.abs(plain.embedding_).max()
    np.testing.assert_allclose(scaled.embedding_, plain.embedding_, atol=1e-3 * size)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_overflowing_squared_distances_do_not_change_affinities(scale):
    plain, scaled = (eq.TSNE(n_iter=0, init="random").fit(data).affinities_ for data in (X, X * scale))
    np.testing.assert_allclose(scaled, plain, rtol=1e-4, atol=1e-9)


TABLE, SPARSE, DISTANCES = (lambda A: A), sparse.csr_matrix, (lambda A: pairwise_distances(A, X))
FEW = {"n_neighbors": 5}
SHORT = {"n_neighbors": 5, "n_iter": 10, "random_state": 0}


@pytest.mark.filterwarnings("ignore:the neighbour graph", "ignore:.*precomputed")
@pytest.mark.parametrize("scale", [2.0**-640, 2.0**-500, 2.0**45, 2.0**660])
@pytest.mark.parametrize(
    ("method", "form"),
    [
        (eq.TSNE(n_iter=10, random_state=0), TABLE),
        (eq.TSNE(n_iter=10, random_state=0, metric="inner_product", engine="grid", perplexity=5), TABLE),
        (eq.UMAP(**SHORT), TABLE),
        (eq.Isomap(**FEW), TABLE),
        (eq.Isomap(**FEW, engine="torch", device="cpu"), TABLE),
        (eq.Isomap(**FEW), SPARSE),
        (eq.Isomap(**FEW, metric="precomputed"), DISTANCES),
        (eq.ClassicalMDS(metric="manhattan"), TABLE),
        (eq.LLE(**FEW), TABLE),
        (eq.LLE(**FEW, metric="precomputed"), DISTANCES),
        (eq.LaplacianEigenmaps(**FEW, affinity="gaussian"), TABLE),
        (eq.LaplacianEigenmaps(**FEW, affinity="gaussian", engine="torch", device="cpu"), TABLE),
        (eq.DKPCA(**SHORT), TABLE),
        (eq.DKPCA(**SHORT, metric="precomputed"), DISTANCES),
        (eq.DKLLE(**SHORT, bandwidth="local"), TABLE),
        (eq.DKLLE(**SHORT, bandwidth="local"), SPARSE),
    ],
)
def test_scale_does_not_change_where_new_rows_are_placed(method, form, scale):
    if method.get_params().get("engine") == "torch":
        pytest.importorskip("torch")
    new = np.vstack([X[::9] + 0.3, np.full((1, 4), 40.0)])
    plain = clone(method).fit(form(X))
    try:
        scaled = clone(method).fit(form(X) * scale)
    except ValueError as error:
        assert scale > 1e100 and "; values beyond 1e+" in str(error)  # refused by name
        return
    sizes = [np.abs(fitted.embedding_).max() for fitted in (plain, scaled)]
    placed = scaled.transform(form(new) * scale)
    np.testing.assert_allclose(placed / sizes[1], plain.transform(form(new)) / sizes[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scaled.transform((form(new) * scale)[:1]), placed[:1], rtol=1e-12, atol=1e-14 * sizes[1])


def test_rows_at_distances_beyond_each_other_are_placed_independently():
    fitted = eq.TSNE(n_iter=10, random_state=0).fit(X)
    rows = np.vstack([X[:1] + 0.3, np.full((1, 4), 1e150)])
    np.testing.assert_array_equal(fitted.transform(rows)[:1], fitted.transform(rows[:1]))


def test_components_at_incomparable_distances_raise():
    data = np.vstack([np.random.default_rng(0).normal(size=(20, 2)) * 1e-120, np.full((20, 2), 1e40)])
    with pytest.raises(ValueError, match=r"point 20 and the points connected to it .* are so far from all other"):
        eq.Isomap(n_neighbors=5).fit(data)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize(
    ("metric", "container"),
    [("manhattan", np.asarray), ("chebyshev", np.asarray), ("manhattan", sparse.csr_matrix)],
)
def test_overflowing_squared_neighbor_distances_do_not_change_affinities(metric, container, scale):
    settings = {"engine": "grid", "perplexity": 5, "metric": metric, "n_iter": 0, "init": "random", "random_state": 0}
    plain, scaled = (eq.TSNE(**settings).fit(container(data)) for data in (X, X * scale))
    np.testing.assert_allclose(scaled.affinities_.toarray(), plain.affinities_.toarray(), rtol=1e-4, atol=1e-9)
    new = X[::9] + 0.01
    placed = [method.transform(container(data)) for method, data in ((plain, new), (scaled, new * scale))]
    np.testing.assert_allclose(placed[1], placed[0], atol=1e-4 * np.abs(placed[0]).max())


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_of_distances_does_not_matter(scale):
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    plain, scaled = (embed(eq.TSNE, data, metric="precomputed", n_iter=20) for data in (D, D * scale))
    np.testing.assert_allclose(scaled.affinities_, plain.affinities_, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(scaled.embedding_, plain.embedding_, atol=1e-3 * np.abs(plain.embedding_).max())


def test_offset_from_the_origin_does_not_matter():
    plain, shifted = (embed(eq.TSNE, data, n_iter=0).affinities_ for data in (INTEGERS, INTEGERS + 10**9))
    assert shifted.tobytes() == plain.tobytes()


# Containers and types


def read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


@pytest.mark.parametrize(
    "convert",
    [
        lambda A: A.astype(np.int32),
        lambda A: A.astype(np.int8),
        lambda A: A.astype(np.float32),
        lambda A: A.astype(np.float16),
        lambda A: A.astype(np.longdouble),
        lambda A: A.astype(">f8"),
        lambda A: A.astype(object),
        lambda A: A.tolist(),
        np.asfortranarray,
        lambda A: np.repeat(A, 2, axis=1)[:, ::2],
        lambda A: A[::-1].copy()[::-1],
        read_only,
        pd.DataFrame,
        lambda A: pd.DataFrame(A, columns=list("abcd"), index=list(range(100, 160))),
    ],
    ids=[
        *("int32", "int8", "float32", "float16", "longdouble", "big-endian", "object", "list", "Fortran", "strided"),
        *("reversed", "read-only", "frame", "named frame"),
    ],
)
def test_container_does_not_matter(convert):
    # Small integers are exact in all of these types.
    plain = eq.TSNE(random_state=0, n_iter=30).fit(INTEGERS.astype(np.float64))
    other = eq.TSNE(random_state=0, n_iter=30).fit(convert(INTEGERS.astype(np.float64)))
    assert other.embedding_.tobytes() == plain.embedding_.tobytes()


@every_method
def test_boolean_tables_equal_float_tables(Method):
    bits = np.random.RandomState(0).standard_normal((40, 12)) > 0
    plain, other = (embed(Method, data, n_iter=20) for data in (bits.astype(float), bits))
    assert other.embedding_.tobytes() == plain.embedding_.tobytes()


@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix])
def test_graph_container_does_not_matter(convert):
    graph = kneighbors_graph(X, 20, mode="distance")
    plain, other = (
        embed(eq.TSNE, data, metric="precomputed", init="random", perplexity=6, n_iter=20)
        for data in (graph, convert(graph))
    )
    assert other.embedding_.tobytes() == plain.embedding_.tobytes()


def test_unsorted_graph_with_zero_distances():
    graph = kneighbors_graph(np.repeat(X[:20], 2, axis=0), 15, mode="distance")  # stores the zeros between duplicates
    shuffled = graph.copy()
    for start, stop in zip(graph.indptr[:-1], graph.indptr[1:], strict=True):
        shuffled.indices[start:stop] = graph.indices[start:stop][::-1]
        shuffled.data[start:stop] = graph.data[start:stop][::-1]
    shuffled.has_sorted_indices = False
    before = shuffled.indices.copy()
    plain, other = (
        embed(eq.TSNE, data, metric="precomputed", init="random", perplexity=5, n_iter=20) for data in (graph, shuffled)
    )
    assert other.embedding_.tobytes() == plain.embedding_.tobytes()
    assert np.array_equal(shuffled.indices, before)
    assert plain.affinities_[0, 1] > 0


def test_misaligned_table_gives_the_same_map():
    table = misaligned(X)
    assert not table.flags.aligned
    for Method in (eq.TSNE, eq.PCA):
        fitted = Method(random_state=0).fit(table)
        np.testing.assert_array_equal(fitted.embedding_, Method(random_state=0).fit(X).embedding_)
    assert check_table(np.ma.masked_array(table)).flags.aligned


@pytest.mark.parametrize("Method", [eq.PCA, eq.ClassicalMDS, eq.Isomap])
def test_values_whose_powers_overflow_are_refused(Method):
    data = X.copy()
    data[7, 2] = 1e300
    with pytest.raises(ValueError, match=r"X contains 1e\+300 at row 7, column 2; values beyond 1e\+75 .* rescale"):
        Method().fit(data)


def test_lle_refuses_values_whose_squares_overflow():
    with pytest.raises(ValueError, match=r"beyond 1e\+150"):
        eq.LLE().fit(1e200 * X)


def test_values_near_the_largest_float_are_refused():
    data = X.copy()
    data[3, 1] = -1.7e308
    with pytest.raises(ValueError, match=r"X contains -1.7e\+308 at row 3, column 1; .* rescale the column"):
        eq.TSNE().fit(data)


def test_principal_start_of_a_sparse_table_does_not_depend_on_its_scale():
    start = [eq.TSNE(n_iter=0, metric="manhattan").fit(sparse.csr_matrix(data)).embedding_ for data in (X, 1e200 * X)]
    assert np.isfinite(start).all()


def test_a_metric_tensor_that_makes_rows_overflow_is_refused():
    with pytest.raises(ValueError, match="X in the metric h contains"):
        eq.TSNE(h=1e300 * np.eye(X.shape[1])).fit(1e200 * X)

"""Metric spaces against their formulas, the axioms, shortest paths in graphs, and landmarks."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap
from support.cases import changed
from support.source_tree import ROOT, needs

from equipoise.neighbors.search import nearest_neighbors
from equipoise.spaces import (
    Discrete,
    Euclidean,
    GraphGeodesic,
    LogCompressed,
    MetricSpace,
    PNorm,
    Precomputed,
    Product,
    Restriction,
    Sphere,
    as_space,
    check_metric,
    farthest_points,
)

GUIDE = ROOT / "docs" / "spaces.md"
X = np.random.default_rng(0).normal(size=(40, 3))
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)
SPACES = (
    Euclidean(X),
    PNorm(X, 1),
    PNorm(X, 2.5),
    PNorm(X, np.inf),
    Discrete(7),
    LogCompressed(PNorm(X, 1)),
    Product(Euclidean(X[:5]), Discrete(6)),
    Restriction(Euclidean(X), [3, 30, 4]),
    Precomputed(squareform(pdist(X))),
    Sphere(2.5 * UNIT, 2.5),
    GraphGeodesic.from_table(X, 5),
)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_every_space_is_a_metric_with_consistent_blocks(space):
    D = space.matrix()
    assert D.shape == (space.n, space.n) and D.dtype == np.float64
    report = check_metric(space)
    assert report and not report.violations and str(report) == f"a metric on {space.n} points"
    report.require()
    i, j = np.array([2, 0, 2]), slice(1, None)
    np.testing.assert_allclose(space.distances(i, j), D[i, j], rtol=1e-14)
    np.testing.assert_allclose(space.distances(j, i), D[j, i], rtol=1e-14)
    assert space.distances([], [0]).shape == (0, 1)
    rows = [space.distances(slice(start, start + 2)) for start in range(0, space.n, 2)]
    np.testing.assert_allclose(np.concatenate(rows), D, rtol=1e-14)
    space.distances()[:] = -1  # the result is a copy
    np.testing.assert_array_equal(space.matrix(), D)


def test_distances_match_their_formulas():
    gap = np.abs(X[:, None] - X[None])
    np.testing.assert_allclose(Euclidean(X).matrix(), np.sqrt((gap**2).sum(axis=2)), rtol=1e-13)
    np.testing.assert_allclose(PNorm(X, 1).matrix(), gap.sum(axis=2), rtol=1e-13)
    np.testing.assert_allclose(PNorm(X, 2.5).matrix(), (gap**2.5).sum(axis=2) ** 0.4, rtol=1e-13)
    np.testing.assert_allclose(PNorm(X, np.inf).matrix(), gap.max(axis=2), rtol=1e-13)
    np.testing.assert_array_equal(Discrete(3).matrix(), 1 - np.eye(3))
    np.testing.assert_allclose(LogCompressed(PNorm(X, 1)).matrix(), np.log(1 + gap.sum(axis=2)), rtol=1e-13)
    product = Product(Euclidean(X[:4]), PNorm(X[4:7], 1))
    a, b = gap[1, 3], gap[4 + 2, 4 + 0]
    np.testing.assert_allclose(
        product.distances([1 * 3 + 2], [3 * 3 + 0]), [[np.hypot(np.sqrt((a**2).sum()), b.sum())]]
    )


def test_diagonal_of_a_product_is_the_joint_space():
    n = 10
    together = Restriction(Product(Euclidean(X[:n, :2]), Euclidean(X[:n, 2:])), np.arange(n) * (n + 1))
    np.testing.assert_allclose(together.matrix(), Euclidean(X[:n]).matrix(), rtol=1e-13)


def test_great_circles_are_accurate_for_near_and_antipodal_points():
    angle = np.array([0, 1e-9, 0.3, np.pi - 1e-9, np.pi])
    points = 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(Sphere(points, 3).distances([0])[0], 3 * angle, rtol=1e-7, atol=0)
    np.testing.assert_allclose(Sphere(UNIT).matrix(), np.arccos(np.clip(UNIT @ UNIT.T, -1, 1)), atol=1e-7)


def test_user_defined_space():
    class Clock(MetricSpace):
        n = 12

        def _block(self, i, j):
            gap = np.abs(i[:, None] - j)
            return np.minimum(gap, 12 - gap).astype(float)

    assert check_metric(Clock()) and Clock().distances([11], [1, 6]).tolist() == [[2, 5]]
    with pytest.raises(TypeError, match=r"Bare must define _block\(i, j\)"):
        bare = type("Bare", (MetricSpace,), {"n": 2})()
        bare.matrix()
    assert as_space(bare) is bare and isinstance(as_space(X), Euclidean)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: PNorm(X, 0.5), "p must be at least 1, got 0.5; for smaller p the triangle inequality does not hold"),
        (lambda: PNorm(X, "a"), "p must be at least 1, got 'a'"),
        (lambda: PNorm(X, 10**400), "p must be at least 1, got 1000"),
        (lambda: Discrete(0), "n must be an integer >= 1, got 0"),
        (lambda: Discrete(None), "n must be an integer >= 1, got None"),
        (lambda: Discrete(10**400), r"n must be below 2\*\*63, because the indices of points are int64, got 1000"),
        (lambda: Sphere(2 * UNIT), "row 0 of points has norm 2, so it is not on the sphere of radius 1"),
        (lambda: Sphere(UNIT, -1), "radius must be a finite number > 0"),
        (lambda: Sphere(UNIT, []), r"radius must be a finite number > 0, got \[\]"),
        (lambda: Sphere(UNIT, Fraction(1)), r"radius must be a finite number > 0, got Fraction\(1, 1\)"),
        (
            lambda: Restriction(Discrete(3), [0, 3]),
            "subset contains the index 3, but the indices of points run from 0 to 2",
        ),
        (lambda: Restriction(Discrete(3), [1, 1]), "subset contains the index 1 more than once"),
        (lambda: Restriction(Discrete(3), np.array([], int)), "subset is empty"),
        (lambda: Discrete(3).distances([0.5]), "i must be a list of integers from 0 to 2, got float64"),
        (lambda: Discrete(3).distances(None, [-1]), "j contains the index -1"),
        (lambda: Precomputed(sparse.eye(3)), "for a sparse matrix, which is a graph, use GraphGeodesic"),
        (lambda: Precomputed([[0, 1], [2, 0]]), "not symmetric"),
        (lambda: Euclidean([[0.0], [np.nan]]), "X contains NaN at row 1"),
        (lambda: GraphGeodesic(X), "for a table of coordinates use GraphGeodesic.from_table"),
        (lambda: GraphGeodesic.from_table(X, 40), "n_neighbors must be an integer between 1 and .* = 39, got 40"),
        (lambda: GraphGeodesic.from_table(X, "a"), "n_neighbors must be an integer between 1 and .*, got 'a'"),
        (lambda: GraphGeodesic.from_table(X, 5, n_threads=0.5), "n_threads must be an integer from 1 to 1024, got 0.5"),
        (lambda: GraphGeodesic(sparse.csr_matrix(X @ X.T), n_threads="a"), "n_threads must be an integer from 1"),
        (lambda: check_metric(Discrete(3), n_threads=None), "n_threads must be an integer from 1 to 1024, got None"),
        (lambda: check_metric(Discrete(3), tol="a"), "tol must be a finite number >= 0, got 'a'"),
        (
            lambda: farthest_points(Discrete(3), 4),
            "m must be an integer between 1 and the number of points of the space, 3, got 4",
        ),
        (lambda: farthest_points(Discrete(3), 1.5), "m must be an integer between 1 and .*, got 1.5"),
        (
            lambda: farthest_points(Euclidean(np.ones((5, 2))), 2),
            "m=2 points cannot be selected: the space has only 1 distinct point; use at most 1",
        ),
        (
            lambda: check_metric(np.ones((2, 3))),
            "must be a MetricSpace or a non-empty square matrix of distances, got shape",
        ),
        (lambda: check_metric([[0, np.inf], [1, 0]]), r"d\(0, 1\) = inf"),
    ],
)
def test_invalid_arguments_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: LogCompressed(X), "space"),
        (lambda: Product(Discrete(2), X), "b"),
        (lambda: Restriction(None, [0]), "space"),
        (lambda: farthest_points(X, 2), "space"),
    ],
)
def test_tables_and_other_objects_are_not_spaces(make, name):
    with pytest.raises(TypeError, match=rf"^{name} must be a metric space, got .*; use Euclidean\(X\) for a table X"):
        make()


def changed_distances(i, j, value, both=True):
    return changed(Euclidean(X[:6]).matrix(), i, j, value, both)


def test_check_metric_names_the_failed_axiom_and_points():
    negative = check_metric(changed_distances(1, 4, -0.5)).violations[0]
    assert negative.axiom == "non-negativity" and set(negative.points) == {1, 4}
    (own,) = check_metric(changed_distances(3, 3, 0.1)).violations
    assert own.axiom == "identity of indiscernibles" and own.points == (3, 3)
    twins = check_metric(Euclidean(X[[0, 1, 0]]))
    assert twins.violations[0].points == (0, 2) and "two different points" in twins.violations[0].text
    D = changed_distances(2, 5, Euclidean(X[:6]).matrix()[2, 5] - 1e-3, both=False)
    (uneven,) = check_metric(D).violations
    assert uneven.axiom == "symmetry" and set(uneven.points) == {2, 5} and uneven.amount == pytest.approx(1e-3)
    assert check_metric(D, tol=1e-2)


def test_check_metric_reports_the_worst_triple():
    D = PNorm(X, 1).matrix() ** 2  # squared distances violate the triangle inequality
    with pytest.raises(ValueError, match="not a metric on 40 points: triangle inequality: d"):
        check_metric(D).require()
    (violation,) = check_metric(D).violations
    excess = (D[:, :, None] - D[:, None, :] - D.T[None]).max(axis=2)  # d(x, y) − d(x, z) − d(z, y), over z
    x, y, z = violation.points
    assert violation.axiom == "triangle inequality" and violation.amount == pytest.approx(excess.max())
    assert D[x, y] - D[x, z] - D[z, y] == pytest.approx(violation.amount)
    assert check_metric(D, n_threads=3).violations == (violation,)


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_matrix_is_a_metric_iff_it_equals_its_shortest_paths(n, seed):
    rng = np.random.default_rng(seed)
    D = rng.integers(1, 6, size=(n, n)).astype(float)
    D = np.triu(D, 1) + np.triu(D, 1).T
    shortest = GraphGeodesic(sparse.csr_matrix(D)).matrix()
    assert bool(check_metric(D)) == np.array_equal(shortest, D)
    assert check_metric(shortest)


def test_graph_geodesics_match_scikit_learn_isomap():
    rng = np.random.default_rng(1)
    t = rng.uniform(4, 12, 300)
    roll = np.column_stack([t * np.cos(t), rng.uniform(0, 10, 300), t * np.sin(t)])
    space = GraphGeodesic.from_table(roll, 8)
    np.testing.assert_allclose(space.matrix(), Isomap(n_neighbors=8).fit(roll).dist_matrix_, rtol=1e-6)
    np.testing.assert_array_equal(GraphGeodesic(nearest_neighbors(roll, 8)).distances([5]), space.distances([5]))


def test_directed_and_zero_length_edges_count():
    graph = sparse.csr_matrix(([3.0, 2.0, 0.0, 1.0], ([0, 1, 1, 3], [1, 0, 2, 2])), shape=(4, 4))
    np.testing.assert_array_equal(GraphGeodesic(graph).distances([0])[0], [0, 2, 2, 3])
    twice = np.repeat(X[:10], 2, axis=0)
    D = GraphGeodesic.from_table(twice, 6).matrix()
    np.testing.assert_allclose(D[::2, ::2], D[1::2, 1::2])
    assert (D[np.arange(0, 20, 2), np.arange(1, 20, 2)] == 0).all()


def test_components_of_a_table_are_joined_by_shortest_bridges():
    line = np.concatenate([np.arange(5.0), 10 + np.arange(5.0), 100 + np.arange(4.0)])[:, None]
    with pytest.warns(
        UserWarning, match="3 components, of 5, 5, 4 points.* 2 bridges, of length 6 to 86, the longest.* 9"
    ):
        space = GraphGeodesic.from_table(line, 2)
    np.testing.assert_allclose(space.matrix(), np.abs(line - line.T))  # on a line, paths are straight
    for metric in ("manhattan", "canberra"):
        with pytest.warns(UserWarning, match="bridges"):
            GraphGeodesic.from_table(np.abs(line) + 1, 2, metric=metric)


def test_many_components_of_duplicates_are_joined():
    islands = np.repeat(np.random.default_rng(2).normal(size=(30, 2)), 4, axis=0)
    with pytest.warns(UserWarning, match="30 components"):
        space = GraphGeodesic.from_table(islands, 3)
    D = space.matrix()
    assert np.isfinite(D).all() and (D - Euclidean(islands).matrix() > -1e-12).all()


def test_disconnected_graph_raises():
    graph = sparse.block_diag([sparse.csr_matrix(np.ones((m, m))) for m in (3, 2)])
    with pytest.raises(ValueError, match="2 components, of 3, 2 points, and there is no path from point 0 to point 3"):
        GraphGeodesic(graph)


def test_farthest_points_are_greedy_and_return_distances():
    space = GraphGeodesic.from_table(X, 6)
    points, rows = farthest_points(space, 12, random_state=3)
    D = space.matrix()
    assert len(set(points)) == 12
    np.testing.assert_allclose(rows, D[points], rtol=1e-14)
    for k in range(1, 12):  # each is the farthest from the previous ones
        assert D[points[k]][points[:k]].min() == pytest.approx(D[:, points[:k]].min(axis=1).max())
    np.testing.assert_array_equal(farthest_points(space, 12, random_state=3)[0], points)


@needs("docs")
def test_spaces_guide_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    namespace = {}
    for block in blocks:  # each block continues the previous one
        exec(compile(block, "spaces.md", "exec"), namespace)
    assert namespace["Y"].shape == (200, 2) and len(namespace["report"].violations) == 1
    assert "not a metric on 200 points: triangle inequality: d(" in capsys.readouterr().out

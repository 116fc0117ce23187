"""The spectral start: eigenvectors of one component, many components side by side, and what cannot converge."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from support.cases import correlations, without_diagonal

import equipoise as eq
from equipoise.initialize import spectral as module
from equipoise.initialize.spectral import shelves, spectral
from equipoise.linalg import laplacian
from equipoise.linalg.pca import JITTER
from equipoise.methods import METHODS

every_method = pytest.mark.parametrize("Method", METHODS, ids=lambda M: M.__name__)


def seed(value=0):
    return np.random.RandomState(value)


def strip(n):
    """Return the affinities of points on a strip, whose Laplacian has well-separated eigenvalues."""
    X = seed(n).uniform(size=(n, 2)) * [5, 1.5]
    W = kneighbors_graph(X, 12, mode="distance")
    W.data = np.exp(-W.data)
    return sparse.csr_matrix((W + W.T) / 2), X


def truth(W, d):
    W = W.toarray()
    degree = W.sum(axis=1)
    return linalg.eigh(np.diag(degree) - W, np.diag(degree))[1][:, 1 : d + 1]


@pytest.mark.parametrize("n", [40, 250, 500])
@pytest.mark.parametrize("container", [sparse.csr_matrix, np.asarray], ids=["sparse", "dense"])
def test_spectral_matches_the_first_nontrivial_eigenvectors(n, container):
    W, _ = strip(n)
    W = container(W.toarray().astype(np.float32))
    Y = spectral(W, 2, seed())
    assert correlations(Y, truth(sparse.csr_matrix(W), 2)).min() > 0.98
    assert Y[:, 0].std() == pytest.approx(1, abs=3 * JITTER)
    assert np.abs(Y.mean(axis=0)).max() < 5 * JITTER


def test_large_strip_is_ordered_along_its_length():
    W, X = strip(4000)
    assert correlations(spectral(W, 1, seed()), X[:, :1])[0] > 0.95


def blocks(sizes):
    """Return a graph with components of these sizes: rings of points, each joined to a few later ones."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    first, m = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes), np.repeat(sizes, sizes)
    i = np.arange(len(labels))
    pairs = [(i, first + (i - first + step) % m) for step in (1, 2, 5, 40)]
    W = sparse.coo_matrix((np.ones(4 * len(i)), np.hstack(pairs)), shape=(len(i), len(i))).tocsr()
    W = without_diagonal(W)
    return sparse.csr_matrix(W + W.T), labels


@pytest.mark.parametrize("d", [1, 2, 3])
def test_components_do_not_overlap(d):
    sizes = [400, 90, 90, 40, 9, 5, 3, 2, 2]
    W, labels = blocks(sizes)
    order = seed().permutation(len(labels))
    Y = spectral(sparse.csr_matrix(W[order][:, order]), d, seed())
    labels, scale = labels[order], Y.std()
    for c, m in enumerate(sizes):
        for other in range(c):
            a, b = Y[labels == c], Y[labels == other]
            gap = np.maximum(a.min(axis=0) - b.max(axis=0), b.min(axis=0) - a.max(axis=0)).max()
            assert gap > -8 * JITTER * max(1, scale)  # boxes do not overlap, up to the jitter
        if m > 8:
            assert np.ptp(Y[labels == c], axis=0).max() > 0
    # The volume of a component is proportional to its number of points.
    large, small = (np.ptp(Y[labels == c], axis=0).max() for c in (0, 1))
    assert large / small == pytest.approx((400 / 90) ** (1 / d), rel=0.2)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_shelves_do_not_overlap(d):
    sides = np.sort(seed(d).uniform(0.1, 1, 60))[::-1]
    low = shelves(sides, d)
    high = low + sides[:, None]
    overlap = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    assert ((overlap < 1e-9).any(axis=2) | np.eye(60, dtype=bool)).all()
    assert (high.max(axis=0) < 3 * (sides**d).sum() ** (1 / d)).all()


@pytest.mark.parametrize("sizes", [[2] * 4000, [5] * 1000, [3000] + [2] * 500, [20] * 300])
def test_thousands_of_components_are_cheap_and_separate(sizes, monkeypatch):
    W, labels = blocks(sizes)
    solved, eigenmap = [], module._eigenmap

    def count(part, d, tol):
        solved.append(part.shape[0])
        return eigenmap(part, d, tol)

    monkeypatch.setattr(module, "_eigenmap", count)
    Y = spectral(W, 2, seed())
    assert solved == [m for m in sizes if m > module.TINY]  # one by one; tiny components need no eigenvectors
    centers = np.array([Y[labels == c].mean(axis=0) for c in range(0, len(sizes), max(1, len(sizes) // 200))])
    assert len(np.unique(centers.round(2), axis=0)) > 0.9 * len(centers)


def test_unconverged_eigenvectors_warn_and_are_smooth(monkeypatch):
    W, X = strip(2000)

    def never(*args, **kwargs):
        raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr(laplacian, "eigsh", never)
    with pytest.warns(
        UserWarning,
        match=r"spectral initial map of 2,000 points did not converge in 100 restarts and is replaced by 100",
    ):
        Y = spectral(W, 2, seed())
    rough = np.abs(Y[:, None] - Y[kneighbors_graph(X, 5).indices.reshape(-1, 5)]).mean()
    assert rough < 0.2 * Y.std()


def test_restarts_are_limited(monkeypatch):
    monkeypatch.setattr(module, "RESTARTS", 1)
    monkeypatch.setattr(module, "TOLERANCE", 1e-12)
    with pytest.warns(UserWarning, match="did not converge in 1 restarts"):
        spectral(strip(3000)[0], 2, seed())


def test_spectral_is_reproducible():
    W, _ = strip(500)
    assert spectral(W, 2, seed()).tobytes() == spectral(W, 2, seed()).tobytes()


# Spectral init in methods

BLOBS, LABELS = make_blobs(150, 4, centers=3, cluster_std=0.5, random_state=1)


@every_method
@pytest.mark.parametrize("engine", ["exact", "grid"])
def test_spectral_maps_scale_with_the_kernel(Method, engine):
    problem = Method(init="spectral", engine=engine, random_state=0).problem(BLOBS)
    Y, kernel = problem.Y0.astype(np.float64), problem.objective.kernel
    assert Y[:, 0].std() == pytest.approx(kernel.spread * kernel.length, rel=0.1)


@pytest.mark.parametrize(
    ("parameters", "data"),
    [
        ({"metric": "precomputed"}, kneighbors_graph(BLOBS, 30, mode="distance")),
        ({"metric": "precomputed"}, NearestNeighbors(n_neighbors=30).fit(BLOBS).kneighbors(BLOBS)[::-1]),
        ({"affinity": "precomputed"}, np.exp(-pairwise_distances(BLOBS))),
        ({"affinity": "precomputed"}, kneighbors_graph(BLOBS, 10)),
    ],
    ids=["graph", "lists", "dense P", "sparse P"],
)
def test_auto_is_spectral_without_coordinates(parameters, data):
    auto, named = (
        eq.TSNE(init=init, perplexity=10, random_state=0, **parameters).problem(data) for init in ("auto", "spectral")
    )
    auto, named = auto.Y0, named.Y0
    assert auto.tobytes() == named.tobytes()


def test_auto_is_pca_with_coordinates_or_all_distances():
    D = pairwise_distances(BLOBS)
    np.fill_diagonal(D, 0)
    for data, metric in ((BLOBS, "euclidean"), (D, "precomputed"), (sparse.csr_matrix(BLOBS), "euclidean")):
        auto, named = (eq.TSNE(init=i, metric=metric, random_state=0).problem(data).Y0 for i in ("auto", "pca"))
        assert auto.tobytes() == named.tobytes()


def purity(Y, labels):
    """Return the share of the 5 nearest neighbours in the map that have the point's label."""
    nearest = NearestNeighbors(n_neighbors=5).fit(Y).kneighbors(return_distance=False)
    return np.mean(labels[nearest] == labels[:, None])


@pytest.mark.parametrize(
    ("Method", "engine"), [*[(Method, "exact") for Method in METHODS], (eq.SNE, "grid"), (eq.TSNE, "grid")]
)
def test_disconnected_graph_gives_a_good_map(Method, engine):
    graph = kneighbors_graph(BLOBS, 20, mode="distance")  # three components
    method = Method(metric="precomputed", perplexity=7, engine=engine, random_state=0, n_iter=300).fit(graph)
    Y = method.embedding_
    assert len(np.unique(Y, axis=0)) == 150 and purity(Y, LABELS) > 0.95


@every_method
@pytest.mark.parametrize(("init", "engine"), [("auto", "exact"), ("spectral", "exact"), ("auto", "grid")])
def test_hundreds_of_duplicates_are_separated_and_stay_together(Method, init, engine):
    rng = seed()
    copies = np.repeat(10 * rng.standard_normal((3, 4)), 200, axis=0)
    X = np.vstack([copies, 100 + rng.standard_normal((100, 4)), -100 + rng.standard_normal((100, 4))])
    with pytest.warns(UserWarning, match="600 rows .*duplicates"):
        problem = Method(init=init, engine=engine, perplexity=10, n_iter=40, random_state=0).problem(X)
    assert len(np.unique(problem.Y0, axis=0)) == len(X)
    places = np.repeat(np.arange(5), [200, 200, 200, 100, 100])
    assert purity(problem.optimize(), places) > 0.95  # measured: at least 0.985
    assert problem.loss_curve[-1, 1] < 0.95 * problem.loss_curve[0, 1]


@pytest.mark.parametrize(
    ("parameters", "data"),
    [
        ({"init": "spectral", "engine": "exact"}, np.vstack([BLOBS] * 3)),
        ({"init": "spectral", "engine": "grid"}, np.vstack([BLOBS] * 3)),
        ({"engine": "grid"}, sparse.csr_matrix(np.hstack([BLOBS, np.where(BLOBS > 0, BLOBS, 0)]))),
        ({"engine": "grid", "metric": "precomputed"}, kneighbors_graph(BLOBS, 30, mode="distance")),
        ({"engine": "grid", "affinity": "uniform", "metric": "inner_product"}, BLOBS),
    ],
    ids=["dense spectral", "sparse spectral", "sparse table", "graph", "uniform"],
)
def test_maps_are_identical_for_any_number_of_threads(parameters, data):
    maps = [
        eq.TSNE(perplexity=10, n_iter=20, random_state=0, n_jobs=n, **parameters).fit_transform(data) for n in (1, 2, 4)
    ]
    assert len({Y.tobytes() for Y in maps}) == 1


def test_isolated_pairs_stay_together():
    n = 3000
    partner = np.arange(n) ^ 1
    P = sparse.csr_matrix((np.ones(n), (np.arange(n), partner)), shape=(n, n))
    Y = eq.TSNE(affinity="precomputed", random_state=0, n_iter=50).fit_transform(P)
    nearest = NearestNeighbors(n_neighbors=1).fit(Y).kneighbors(return_distance=False)[:, 0]
    assert np.mean(nearest == partner) > 0.6  # measured 0.70 after 50 iterations; chance level is 1/n

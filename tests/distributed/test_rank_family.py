"""Methods of the family over ranks: spheres, divergences, and SNE where normalisers underflow."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from support.shared_problems import assert_same_bytes
from support.thread_ranks import run_ranks

import equipoise as eq
from equipoise.arrays.csr import make_csr
from equipoise.distributed import fit
from equipoise.distributed.halo import Halo
from equipoise.distributed.partition import Partition
from equipoise.distributed.rank_engine import RankGrid
from equipoise.distributed.shared_map import SharedMap
from equipoise.distributed.underflowing_rows import SharedConditionalKL
from equipoise.divergences import Beta, ChiSquare, Gamma, JensenShannon, NeRV, Renyi, SymmetricKL
from equipoise.engines import Reference
from equipoise.geometry import Torus
from equipoise.kernels import StudentT
from equipoise.objectives import ConditionalKL

pytestmark = pytest.mark.ranks
RANKS = 1, 2, 3, 4
N = 2600  # three blocks of rows: one of four ranks has no points


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(8, 6))
    return centres[rng.integers(8, size=N)] + rng.normal(size=(N, 6))


def symmetric(divergence):
    return eq.SymmetricSNE(kernel=StudentT(), divergence=divergence, n_iter=8, random_state=0, perplexity=10)


METHODS = {
    "s-SNE": eq.SphericalSNE(n_iter=8, random_state=0, perplexity=10, tol=0.1),
    "t-SNE on the sphere": eq.TSNE(geometry="sphere", n_iter=8, random_state=0, perplexity=10, tol=0.1),
    "t-SNE by gradient descent": eq.TSNE(optimizer=eq.GradientDescent(), n_iter=8, random_state=0, perplexity=10),
    "Renyi": symmetric(Renyi(0.5)),
    "Beta": symmetric(Beta(1.5)),
    "Gamma": symmetric(Gamma(0.5)),
    "NeRV": symmetric(NeRV(0.5)),
    "symmetric KL": symmetric(SymmetricKL()),
    "Jensen-Shannon": symmetric(JensenShannon()),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_same_bytes_for_any_number_of_ranks(X, name):
    method = METHODS[name]
    Y, curve = assert_same_bytes(method, X, RANKS)
    problem = clone(method).set_params(engine="grid").problem(X)
    assert_allclose(problem.loss(Y), curve[-1, 1], rtol=2e-3)
    if problem.geometry.columns(2) == 3:
        assert_allclose(np.linalg.norm(Y, axis=1), problem.geometry.radius, rtol=1e-5)


def test_rows_of_sne_that_underflow_are_those_of_one_process():
    rng = np.random.default_rng(1)
    Y = rng.uniform(-3, 3, size=(N, 2)).astype(np.float32)
    underflows = np.zeros(N, bool)
    underflows[rng.choice(N, size=70, replace=False)] = True  # two batches
    Y[underflows] += rng.choice([-200, 200], size=(70, 2)).astype(np.float32)
    P = eq.SNE(perplexity=5, engine="grid").problem(rng.normal(size=(N, 3))).affinities
    kernel, push = eq.kernels.Gaussian(), rng.normal(size=(N, 2))

    def work(group):
        partition = Partition.of(group, N)
        shared, own = SharedMap(group, partition, 1), partition.own
        halo = Halo(group, partition, P[own].indices)
        rows = halo.localized(make_csr(P[own].data, P[own].indices, P[own].indptr, P[own].shape))
        engine, results = RankGrid(shared, halo, 1, 0.01), (push[own].copy(), np.zeros(own.stop - own.start))
        objective = SharedConditionalKL.of_sums(rows, rows, kernel, shared)
        objective._add_underflowing_rows(Y[own], underflows[own], results, engine)
        return [shared.gather(part) for part in results]

    truth = push.copy(), np.zeros(N)
    ConditionalKL(P, kernel)._add_underflowing_rows(Y, underflows, truth, Reference())
    one = run_ranks(1, work)[0]
    for found, expected in zip(one, truth, strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    for size in RANKS[1:]:
        for found, expected in zip(run_ranks(size, work)[0], one, strict=True):
            assert_array_equal(found, expected)


@pytest.mark.parametrize("method", [eq.UMAP, eq.DKLLE])
def test_fits_that_start_at_an_eigenmap(method):
    X = np.random.default_rng(0).random((17_000, 2))  # connected; NumPy adds arrays of this size in place

    def work(group):
        result = fit(method(n_iter=4, random_state=0), X, group=group)
        return result.gather()

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as if the start were that of init="pca"
        warnings.simplefilter("ignore", eq.UnfinishedWarning)
        one, three = (run_ranks(size, work)[0] for size in (1, 3))
    assert_array_equal(one, three)
    assert np.isfinite(one).all()


REFUSED = [
    (eq.TSNE(geometry=Torus(20.0)), r"geometry=Torus.* is not supported over ranks"),
    (eq.TSNE(3, geometry="sphere"), r"n_components=3 is too large over ranks.*; use at most 2"),
    (eq.TSNE(metric="manhattan"), r"metric='manhattan' is not supported over ranks"),
    (eq.TSNE(optimizer=eq.Accelerated()), r"optimizer=Accelerated.* is not supported over ranks; use Momentum\(\)"),
    (eq.GSNE(alpha=1.5), r"alpha=1.5 compares all pairs, which is not supported over ranks; use alpha < 1"),
    (eq.SymmetricSNE(divergence=ChiSquare()), r"divergence=ChiSquare\(\) compares all pairs"),
    (eq.TSNE(affinity="uniform"), r"affinity='uniform' is not supported over ranks; use affinity='gaussian'"),
    (eq.DKLLE(metric="cosine"), r"metric='cosine' is not supported over ranks; use metric='euclidean'"),
    (eq.DKPCA(), r"DKPCA does not run over ranks; use a method of the SNE family, UMAP or DKLLE"),
    (eq.TSNE(engine="exact"), r"engine='exact' does not run over ranks; use engine=\"auto\" or engine=\"torch\""),
    (eq.PCA(), r"method must be a method of attraction and repulsion such as TSNE\(\)"),
    (eq.TSNE(random_state=np.random.RandomState(0)), r"random_state must be an integer or None over ranks"),
]


@pytest.mark.parametrize(("method", "message"), REFUSED, ids=[message[:24] for _, message in REFUSED])
def test_what_does_not_work_over_ranks_is_refused_before_the_table_is_read(method, message):
    class Unread:
        name, shape, dtype = "X", (500, 4), np.dtype(np.float64)

        def read(self, start, stop):
            raise AssertionError("the table was read")

    with pytest.raises(ValueError, match=message):
        run_ranks(2, lambda group: fit(method, Unread(), group=group))


def test_rank_that_has_opened_another_table_is_refused(X):
    def work(group):
        table = X if group.rank != 1 else X + 1e-6
        return fit(eq.TSNE(n_iter=2, random_state=0), table, group=group)

    message = r"the content of the table \(hash of rows \[0, 1300, 2599\]\) differs between ranks: .* on rank 1"
    with pytest.raises(ValueError, match=message):
        run_ranks(3, work)

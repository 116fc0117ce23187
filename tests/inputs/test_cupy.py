"""CuPy arrays are accepted and returned like tensors; tested with a stand-in for CuPy that needs no GPU."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from support.fake_cupy import cupy  # noqa: F401
from support.on_torch import brief

import equipoise as eq
from equipoise.arrays import namespace

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def table(rng):
    return rng.standard_normal((80, 6)).astype(np.float32)


METHODS = [
    brief(),
    brief(eq.UMAP, n_neighbors=10),
    eq.PCA(engine="torch", device="cpu"),
    eq.LaplacianEigenmaps(engine="torch", device="cpu"),
    eq.MDS(engine="torch", device="cpu", n_iter=20, random_state=0),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_cupy_input_gives_the_tensor_map_as_a_cupy_array(cupy, table, method):  # noqa: F811
    expected = method.fit_transform(torch.from_numpy(table))
    found = method.fit_transform(cupy.ndarray(table))
    assert isinstance(found, cupy.ndarray) and isinstance(method.embedding_, cupy.ndarray)
    assert_array_equal(found.get(), expected.numpy())
    new = method.transform(cupy.ndarray(table[:3] + 0.01))
    assert isinstance(new, cupy.ndarray)
    assert_allclose(new.get(), np.asarray(method.transform(table[:3] + 0.01)), rtol=1e-5, atol=1e-6)


ITERATIVE = [
    brief(),
    brief(eq.UMAP, n_neighbors=10),
    eq.PCA(engine="torch", device="cpu", solver="flow", random_state=0),
    eq.MDS(engine="torch", device="cpu", n_iter=20, random_state=0),
]


@pytest.mark.parametrize("method", ITERATIVE, ids=lambda m: type(m).__name__)
def test_interrupted_fit_keeps_the_map_as_a_cupy_array(cupy, table, method):  # noqa: F811
    def interrupt(iteration, loss, Y):
        raise KeyboardInterrupt

    method = clone(method).set_params(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        method.fit(cupy.ndarray(table))
    assert isinstance(method.embedding_, cupy.ndarray) and np.isfinite(method.embedding_.get()).all()


def test_refused_fit_leaves_the_map_of_a_tensor(cupy, table):  # noqa: F811
    method = brief().fit(torch.from_numpy(table))
    Y = method.embedding_
    with pytest.raises(ValueError, match="perplexity"):
        method.set_params(perplexity=-1).fit(cupy.ndarray(table))
    assert method.embedding_ is Y


def test_problem_of_a_cupy_array_returns_cupy_arrays(cupy, table):  # noqa: F811
    problem = brief().problem(cupy.ndarray(table))
    Y = problem.optimize()
    assert isinstance(Y, cupy.ndarray) and isinstance(problem.Y, cupy.ndarray)
    assert_array_equal(Y.get(), brief().problem(torch.from_numpy(table)).optimize().numpy())


def neighbors_of(table):
    distances = np.linalg.norm(table[:, None] - table, axis=2)
    indices = np.argsort(distances, axis=1)[:, 1:21].astype(np.int32)
    return indices, np.take_along_axis(distances, indices, axis=1)


@pytest.mark.parametrize("Method", [eq.TSNE, eq.UMAP], ids=lambda Method: Method.__name__)
def test_pair_of_cupy_arrays_gives_the_map_of_the_numpy_pair_as_a_cupy_array(cupy, table, Method):  # noqa: F811
    pair = neighbors_of(table)
    count = {"perplexity": 6} if Method is eq.TSNE else {"n_neighbors": 15}
    method = brief(Method, metric="precomputed", **count)
    expected, placed = method.fit_transform(pair), method.transform([A[:3] for A in pair])
    assert isinstance(expected, np.ndarray)
    for convert, kind in ((torch.from_numpy, torch.Tensor), (cupy.ndarray, cupy.ndarray)):
        given = tuple(map(convert, pair))
        found, new = method.fit_transform(given), method.transform([A[:3] for A in given])
        problem = method.problem(given)
        assert all(isinstance(Y, kind) for Y in (found, method.embedding_, new, problem.optimize(), problem.Y))
        assert_array_equal(namespace.to_numpy(found), expected)
        assert_array_equal(namespace.to_numpy(new), placed)


def test_cpu_engines_accept_pairs_of_cupy_arrays(cupy, table):  # noqa: F811
    pair = neighbors_of(table)
    mixed = cupy.ndarray(pair[0]), pair[1]
    for method in (
        eq.TSNE(engine="exact", metric="precomputed", n_iter=20, random_state=0, perplexity=5),
        eq.Isomap(metric="precomputed"),
    ):
        expected = method.fit_transform(pair)
        for given in (tuple(map(cupy.ndarray, pair)), mixed):
            assert_array_equal(method.fit_transform(given), expected)


def test_loss_problem_with_a_cupy_Y0_returns_cupy_arrays(cupy, table):  # noqa: F811
    def loss(Y):
        return ((Y - 1) ** 2).sum()

    problem = eq.LossProblem(loss, cupy.ndarray(table), n_iter=5)
    expected = eq.LossProblem(loss, table, n_iter=5).optimize()
    assert isinstance(problem.Y, cupy.ndarray)
    found = problem.optimize()
    assert isinstance(found, cupy.ndarray)
    assert_array_equal(found.get(), expected)


def test_problem_with_a_metric_function_returns_cupy_arrays(cupy, table):  # noqa: F811
    def stretched(Y):
        return 2 * torch.eye(Y.shape[1], dtype=Y.dtype, device=Y.device)

    method = brief(g=stretched, perplexity=5)
    found = method.problem(cupy.ndarray(table)).optimize(n_iter=5)
    assert isinstance(found, cupy.ndarray)
    assert_array_equal(found.get(), method.problem(torch.from_numpy(table)).optimize(n_iter=5).numpy())


def test_cpu_engines_return_numpy_arrays(cupy, table):  # noqa: F811
    method = eq.TSNE(engine="exact", n_iter=20, random_state=0, perplexity=5)
    found = method.fit_transform(cupy.ndarray(table))
    assert_array_equal(found, method.fit_transform(table))
    assert_array_equal(method.transform(cupy.ndarray(table[:2])), method.transform(table[:2]))


def test_cupy_arrays_are_read_on_the_cpu_without_pytorch(cupy, table, monkeypatch):  # noqa: F811
    monkeypatch.setitem(sys.modules, "torch", None)
    found = eq.PCA().fit_transform(cupy.ndarray(table))
    assert_array_equal(found, eq.PCA().fit_transform(table))


def test_pca_inverse_transform_of_cupy_arrays(cupy, table):  # noqa: F811
    method = eq.PCA(6, engine="torch", device="cpu")
    Y = method.fit_transform(cupy.ndarray(table))
    assert_allclose(method.inverse_transform(Y).get(), table, atol=1e-4)


def test_save_and_evaluate_accept_cupy_arrays(cupy, table, tmp_path):  # noqa: F811
    method = brief().fit(cupy.ndarray(table))
    eq.save(method, tmp_path / "map.eq")
    assert_array_equal(eq.load(tmp_path / "map.eq").embedding_, method.embedding_.get())
    with_numpy, with_cupy = (eq.evaluate(X, method.embedding_.get(), k=5) for X in (table, cupy.ndarray(table)))
    assert str(with_numpy) == str(with_cupy)


@pytest.mark.parametrize("subsample", [0.5, 1.0])
def test_stability_accepts_cupy_arrays(cupy, table, subsample):  # noqa: F811
    method = eq.PCA(engine="torch", device="cpu")
    found, expected = (eq.stability(method, X, runs=2, subsample=subsample, k=3) for X in (cupy.ndarray(table), table))
    assert_allclose(found.maps, expected.maps, atol=1e-4)

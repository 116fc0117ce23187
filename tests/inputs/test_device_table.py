"""Tables on a device and their fits, run on PyTorch's CPU device, against the CPU code."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from support.cases import unequal_digits
from support.on_torch import BRIEF, brief
from support.source_tree import ROOT, needs

import equipoise as eq
from equipoise.arrays import csr
from equipoise.inputs import SparseTable, Table, make_input
from equipoise.kernels import Kernel
from equipoise.linalg.pca import JITTER, principal_components
from equipoise.neighbors.search import nearest_neighbors
from equipoise.neighbors.vectors import Graph
from equipoise.optimize import gradient_steps

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.arrays.device_csr import Rows  # noqa: E402
from equipoise.inputs.device_table import DeviceTable, check_tensor, row_sums  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits():
    return unequal_digits(300)


# A table on a device


def sorted_rows(D2):
    """Return neighbours and their d², sorted by distance in each row."""
    D2 = csr.on_host(D2)
    k = D2.nnz // D2.shape[0]
    data, indices = D2.data.reshape(-1, k), D2.indices.reshape(-1, k)
    order = np.argsort(data, axis=1, kind="stable")
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(data, order, axis=1)


CASES = {
    "as it is": lambda X: X,
    "far from the origin": lambda X: X + 1e8,
    "tiny": lambda X: X * 1e-150,
    "huge": lambda X: X * 1e150,
}


@pytest.mark.parametrize(
    ("name", "metric"), [*((name, "euclidean") for name in CASES), ("as it is", "l2"), ("as it is", "cosine")]
)
def test_neighbors_and_components_match_the_cpu(name, metric, digits):
    X = CASES[name](digits)
    on_cpu, on_device = make_input(X, metric, None), make_input(X, metric, None, device="cpu")
    assert isinstance(on_cpu, Table) and isinstance(on_device, DeviceTable) and on_device.on_device
    (D2, _), (rows, found) = on_cpu.neighbors(20, 1), on_device.neighbors(20, 1)
    assert found == 1.0
    (i, a), (j, b) = sorted_rows(D2), sorted_rows(rows)
    np.testing.assert_array_equal(i, j)
    np.testing.assert_allclose(b / b.max(), a / a.max(), rtol=1e-3, atol=1e-7)
    rng = np.random.RandomState(0)
    P, Q = on_cpu.principal(2, rng), on_device.principal(2, rng).numpy()
    assert np.abs(P - Q).max() < 12 * JITTER
    fit, same = brief().fit(X), eq.TSNE(engine="grid", **BRIEF).fit(X)
    np.testing.assert_allclose(fit.affinities_.toarray(), same.affinities_.toarray(), rtol=2e-3, atol=1e-8)


def test_principal_components_with_more_columns_than_rows():
    X = np.random.default_rng(0).standard_normal((30, 50)) * np.linspace(3, 1, 50)
    P = principal_components(X, 2, np.random.RandomState(0))
    Q = DeviceTable(torch.from_numpy(X), "euclidean").principal(2, np.random.RandomState(0)).numpy()
    assert np.abs(P - Q).max() < 12 * JITTER
    line = np.outer(np.arange(20.0), np.ones(3))  # rank 1
    assert DeviceTable(torch.from_numpy(line), "euclidean").principal(2, np.random.RandomState(0))[:, 1].std() < 0.05
    flat = DeviceTable(torch.ones((20, 3)), "euclidean").principal(2, np.random.RandomState(0))
    assert flat.isfinite().all() and flat.abs().max() < 12 * JITTER


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_distances_and_rows_match_the_cpu(metric, digits):
    on_cpu, on_device = make_input(digits, metric, None), make_input(digits, metric, None, device="cpu")
    part = np.array([4, 1])
    np.testing.assert_array_equal(on_device.rows(part).numpy(), digits[part])
    found = on_device.squared_to_all(on_device.rows(part))
    np.testing.assert_allclose(found, on_cpu.squared_to_all(on_cpu.rows(part)), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(on_device.squared(), on_cpu.squared(), rtol=1e-12, atol=1e-12)
    for k in (0, 300):
        with pytest.raises(ValueError, match="k must be between 1 and n_samples - 1 = 299"):
            on_device.neighbors(k, 1)


@pytest.mark.parametrize("D", [1, 2, 3, 64, 101])
def test_row_sums_do_not_depend_on_the_other_rows(D):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    A = torch.as_tensor(np.random.RandomState(0).standard_normal((300, D)), device=device)
    sums = row_sums(A)
    assert sums.shape == (300, 1)
    torch.testing.assert_close(sums, A.sum(dim=1, keepdim=True), rtol=1e-12, atol=1e-12)
    assert torch.equal(row_sums(A[:1]), sums[:1]) and torch.equal(row_sums(A[7:50]), sums[7:50])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_transform_matches_the_cpu(metric, digits):
    fit = brief(metric=metric).fit(digits[:250])
    same = eq.TSNE(engine="grid", metric=metric, init=fit.embedding_, **{**BRIEF, "n_iter": 0}).fit(digits[:250])
    new = digits[250:]
    placed = fit.transform(new)
    assert type(placed) is np.ndarray and placed.shape == (50, 2)
    np.testing.assert_array_equal(fit.transform(digits[3:9]), fit.embedding_[3:9])
    np.testing.assert_array_equal(fit.transform(new[:1]), placed[:1])  # each row independently
    data, other = fit._data, same._data
    (i, a), (j, b) = (sorted_rows(d.nearest(d.check_new(new), 30, 1).d2) for d in (other, data))
    np.testing.assert_array_equal(i, j)
    np.testing.assert_allclose(b, a, rtol=1e-3)
    size = np.ptp(fit.embedding_, axis=0).max()
    near = np.linalg.norm(placed - same.transform(new), axis=1) < 0.02 * size
    assert near.mean() > 0.9


@pytest.mark.parametrize("Method", [eq.TSNE, eq.SNE, eq.UMAP, eq.SphericalSNE])
def test_output_type_matches_input_type(Method, digits):
    T = torch.from_numpy(digits).requires_grad_()
    fit = brief(Method)
    Y = fit.fit_transform(T)
    new = fit.transform(torch.from_numpy(digits[:4] + 0.01))
    for map in (Y, fit.embedding_, new):
        assert isinstance(map, torch.Tensor) and map.device == T.device and map.dtype == torch.float32
    assert isinstance(fit.transform(digits[:4]), np.ndarray)
    array = brief(Method).fit(digits)
    assert type(array.embedding_) is np.ndarray and type(array.transform(digits[:4])) is np.ndarray
    np.testing.assert_array_equal(array.transform(torch.from_numpy(digits[:4])).numpy(), array.transform(digits[:4]))
    np.testing.assert_array_equal(Y.numpy(), array.embedding_)
    on_cpu = Method(engine="grid", **BRIEF).fit(torch.from_numpy(digits))
    assert type(on_cpu.embedding_) is np.ndarray  # the other engines return NumPy arrays
    assert isinstance(brief(Method, n_iter=2).fit(T, init=Y).embedding_, torch.Tensor)


def test_labels_and_maps_may_be_tensors(digits):
    labels = torch.arange(300) % 2
    Y = brief(eq.UMAP, n_iter=20).fit_transform(torch.from_numpy(digits), labels)
    np.testing.assert_array_equal(Y.numpy(), brief(eq.UMAP, n_iter=20).fit_transform(digits, labels.numpy()))
    report = eq.evaluate(torch.from_numpy(digits), Y.requires_grad_())
    assert report.k == eq.evaluate(digits, Y.detach().numpy()).k
    assert len(eq.plot(Y).axes) == 1


def test_integer_and_bfloat16_tensors_are_accepted(digits):
    whole = torch.from_numpy(load_digits().data[:100]).to(torch.uint8)
    Y = brief(perplexity=5, n_iter=5).fit_transform(whole)
    np.testing.assert_array_equal(Y.numpy(), brief(perplexity=5, n_iter=5).fit_transform(whole.float()).numpy())
    half = brief(perplexity=5, n_iter=5).fit(whole.to(torch.bfloat16))
    np.testing.assert_array_equal(half.embedding_.numpy(), Y.numpy())
    again = pickle.loads(pickle.dumps(half))
    np.testing.assert_array_equal(again.transform(whole[:3].float() + 1), half.transform(whole[:3].float() + 1))


def test_read_only_table_is_accepted(digits):
    X = digits.copy()
    X.flags.writeable = False
    np.testing.assert_array_equal(brief().fit_transform(X), brief().fit_transform(digits))


def table_with(value):
    X = torch.zeros((30, 4))
    X[12, 2] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (table_with(torch.nan), "X contains NaN at row 12, column 2; drop such rows, or replace the values"),
        (table_with(-torch.inf), "X contains -inf at row 12, column 2"),
        (table_with(torch.nan).numpy(), "row 12, column 2"),
        (torch.zeros(30), r"X must be a table of at least 2 rows and one column, got shape \(30,\)"),
        (torch.zeros((30, 0)), r"got shape \(30, 0\)"),
        (torch.zeros((0, 4)), r"got shape \(0, 4\)"),
        (torch.zeros((1, 4)), "at least 2 rows"),
        (torch.zeros((30, 4), dtype=torch.complex64), "X is complex; pass real numbers"),
    ],
    ids=["nan", "-inf", "nan in NumPy", "1-D", "no columns", "no rows", "one row", "complex"],
)
def test_invalid_tables_raise(X, message):
    with pytest.raises(ValueError, match=message):
        brief(perplexity=5).fit(X)


def test_invalid_new_rows_raise(digits):
    fit = brief(n_iter=2).fit(digits)
    wrong = digits[:2].copy()
    wrong[1, 5] = np.nan
    for new, message in (
        (torch.from_numpy(digits[:3, :7]), r"X has shape \(3, 7\), but the fitted data had 64 columns"),
        (torch.from_numpy(digits[0]), r"X has shape \(64,\), but the fitted data had 64 columns"),
        (digits[:3, :7], "7 features"),
        (wrong, "row 1, column 5"),
        (torch.from_numpy(wrong), "NaN at row 1, column 5"),
    ):
        with pytest.raises(ValueError, match=message):
            fit.transform(new)
    assert check_tensor([[1, 2]], CPU, min_rows=1).dtype == torch.float64  # integers keep their precision


def test_zero_row_with_cosine_metric_raises(digits):
    X = digits.copy()
    X[5] = 0
    for engine in ("torch", "grid"):
        with pytest.raises(ValueError, match="row 5 is zero, so metric='cosine' is not defined for it"):
            eq.TSNE(engine=engine, metric="cosine", **BRIEF).fit(X)


# Metrics and inputs for which the CPU searches neighbours


def test_other_metrics_and_inputs_use_the_cpu_search(digits):
    X = digits[:200]
    D = cdist(X, X)
    D = (D + D.T) / 2
    P = sparse.csr_matrix(np.exp(-D / 10) * (D > 0) * (np.sort(D, axis=1)[:, 20:21] >= D))
    graph: Graph = nearest_neighbors(X, 90)
    h = np.diag(np.linspace(1, 2, 64))
    cases = {
        "manhattan": ({"metric": "manhattan"}, X),
        "a function": ({"metric": lambda a, b: np.abs(a - b).max()}, X[:, :6]),
        "a metric tensor": ({"h": h}, X),
        "a sparse table": ({}, sparse.csr_matrix(np.where(X > 1, X, 0))),
        "distances": ({"metric": "precomputed"}, D),
        "neighbours": ({"metric": "precomputed"}, (graph.indices, graph.distances)),
        "affinities": ({"affinity": "precomputed", "init": "random"}, P),
    }
    for name, (parameters, data) in cases.items():
        on_torch, on_cpu = (eq.TSNE(engine=e, **BRIEF, **parameters).fit(data) for e in ("torch", "grid"))
        assert on_torch.engine_ == "torch" and not isinstance(on_torch._data, DeviceTable), name
        assert (on_torch.affinities_ != on_cpu.affinities_).nnz == 0, name
        assert on_torch.loss_ == pytest.approx(on_cpu.loss_, rel=0.02), name
    assert isinstance(make_input(cases["a sparse table"][1], "cosine", None, device="cpu"), SparseTable)
    on_torch = eq.TSNE(engine="torch", metric="manhattan", **BRIEF).fit(torch.from_numpy(X))
    assert isinstance(on_torch.embedding_, torch.Tensor) and isinstance(
        on_torch.transform(torch.from_numpy(X)), torch.Tensor
    )


# Interrupted, saved and resumed runs


class Interrupt:
    """A callback that raises KeyboardInterrupt at one iteration."""

    def __init__(self, at):
        self.at = at

    def __call__(self, iteration, loss, Y):
        if iteration == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("sorted_from", [4096, 100])
def test_checkpoint_resumes_to_the_same_bytes(as_tensor, sorted_from, digits, tmp_path, monkeypatch):
    monkeypatch.setattr(gradient_steps, "LOCALITY", sorted_from)
    data, n_iter = torch.from_numpy(digits) if as_tensor else digits, 130
    whole = brief(n_iter=n_iter).fit(data)
    path = tmp_path / "run.eqc"
    with pytest.raises(KeyboardInterrupt):
        brief(n_iter=n_iter, callbacks=[eq.Checkpoint(path, every=20), Interrupt(100)]).fit(data)
    resumed = brief(n_iter=n_iter, callbacks=[eq.Checkpoint(path, every=20, resume=True)]).fit(data)
    assert bool((resumed.embedding_ == whole.embedding_).all())
    np.testing.assert_array_equal(resumed.loss_curve_[-2:], whole.loss_curve_[-2:])
    assert (resumed._problem._state.order is not None) == (sorted_from == 100)
    with pytest.raises(ValueError, match=r"a checkpoint of another run: .*affinities"):
        brief(n_iter=n_iter, perplexity=9, callbacks=[eq.Checkpoint(path, resume=True)]).fit(data)
    with pytest.raises(ValueError, match="differs in initial map"):
        brief(n_iter=n_iter, random_state=1, callbacks=[eq.Checkpoint(path, resume=True)]).fit(data)
    with pytest.raises(ValueError, match=r"a checkpoint of another run: .*engine"):
        eq.TSNE(**{**BRIEF, "n_iter": n_iter}, engine="grid", callbacks=[eq.Checkpoint(path, resume=True)]).fit(data)


def test_interrupted_run_keeps_its_map(digits):
    fit = brief(callbacks=[Interrupt(50)], n_iter=200)
    with pytest.raises(KeyboardInterrupt):
        fit.fit(torch.from_numpy(digits))
    assert isinstance(fit.embedding_, torch.Tensor) and fit.n_iter_ == 50


@pytest.mark.parametrize("Method", [eq.TSNE, eq.SNE, eq.UMAP, eq.DKLLE, eq.SphericalSNE])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_saved_and_pickled_methods_transform_identically(Method, as_tensor, digits, tmp_path):
    fit = brief(Method, n_iter=10).fit(torch.from_numpy(digits) if as_tensor else digits)
    new = digits[:5] + 0.05
    placed = fit.transform(new)
    eq.save(fit, tmp_path / "method.eqz")
    pickled, loaded = pickle.loads(pickle.dumps(fit)), eq.load(tmp_path / "method.eqz")
    for again in (pickled, loaded):
        np.testing.assert_array_equal(again.transform(new), placed)
        np.testing.assert_array_equal(np.asarray(again.embedding_), np.asarray(fit.embedding_))
        assert (again.affinities_ != fit.affinities_).nnz == 0
    assert type(pickled.embedding_) is type(fit.embedding_) and type(loaded.embedding_) is np.ndarray
    assert pickled._problem.loss(pickled.embedding_) == fit._problem.loss(fit.embedding_)


def test_gpu_state_loads_on_the_cpu_without_a_gpu(digits, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for one in (
        Rows.of(sparse.identity(5, dtype=np.float32, format="csr"), CPU),
        DeviceTable(torch.from_numpy(digits), "cosine"),
    ):
        again = object.__new__(type(one))
        again.__setstate__({**one.__getstate__(), "device": "cuda"})
        part = "data" if isinstance(one, Rows) else "X"
        assert getattr(again, part).equal(getattr(one, part)) and getattr(again, part).device == CPU


def test_loading_without_pytorch_raises_with_install_hint(digits, tmp_path, monkeypatch):
    eq.save(brief(n_iter=2).fit(digits), tmp_path / "method.eqz")
    monkeypatch.setattr("equipoise.store.find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match=r'method\.eqz .* engine="torch", which needs PyTorch: pip install "equipoise\[gpu\]"'
    ):
        eq.load(tmp_path / "method.eqz")


# The unsolved problem


class Operators(Kernel):
    """A heavy-tailed kernel in plain operators."""

    def value(self, d2):
        return (1 + d2) ** -1.5

    def slope(self, d2):
        return -1.5 * (1 + d2) ** -2.5


class Functions(Kernel):
    """The same kernel with NumPy functions."""

    def value(self, d2):
        return np.exp(-1.5 * np.log1p(d2))

    def slope(self, d2):
        return -1.5 * np.exp(-2.5 * np.log1p(d2))


@pytest.mark.parametrize("Method", [eq.TSNE, eq.SNE, eq.GSNE, eq.UMAP])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_problem_results_keep_the_dtype_of_the_map(Method, dtype, digits):
    Y = np.random.default_rng(0).standard_normal((300, 2)).astype(dtype)
    on_torch, on_cpu = (Method(engine=name, tol=1e-3, **BRIEF).problem(digits) for name in ("torch", "grid"))
    assert on_torch.loss(Y) == pytest.approx(on_cpu.loss(Y), rel=1e-3)
    for ask in ("gradient", "attraction", "repulsion"):
        found, truth = getattr(on_torch, ask)(Y), getattr(on_cpu, ask)(Y)
        assert found.dtype == truth.dtype == dtype and found.shape == (300, 2)
        assert np.linalg.norm(found - truth) <= 5e-3 * np.linalg.norm(truth), ask
    np.testing.assert_allclose(on_torch.attraction(Y) + on_torch.repulsion(Y), -on_torch.gradient(Y), atol=1e-7)
    np.testing.assert_array_equal(on_torch.gradient(torch.from_numpy(Y)), on_torch.gradient(Y))
    with pytest.raises(ValueError, match="Y has shape"):
        on_torch.loss(Y[:5])


def test_user_kernels_in_operators_and_numpy_functions_match(digits):
    fits = [
        eq.SymmetricSNE(kernel=kernel, engine=name, **{**BRIEF, "n_iter": 60}).fit(digits)
        for kernel in (Operators(), Functions())
        for name in ("torch", "grid")
    ]
    for fit in fits[1:]:
        assert fit.loss_ == pytest.approx(fits[0].loss_, rel=0.02)


def test_spectral_and_random_init_match_the_cpu_loss(digits):
    for init in ("spectral", "random"):
        on_torch, on_cpu = (eq.TSNE(engine=name, init=init, **BRIEF).fit(digits) for name in ("torch", "grid"))
        assert on_torch.loss_ == pytest.approx(on_cpu.loss_, rel=0.05)


@pytest.mark.slow
@needs("docs")
def test_gpu_guide_runs():
    page, namespace = ROOT / "docs" / "gpu.md", {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(compile(code, str(page), "exec"), namespace)
    assert isinstance(namespace["Y"], torch.Tensor)

"""Metric functions g(y) against flat losses, the closed form of eq. (G1), and finite differences."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.cases import KERNELS, UserKernel, differences
from support.source_tree import ROOT, needs

import equipoise as eq
from equipoise.arrays import memory_limits as room
from equipoise.arrays import namespace as arrays
from equipoise.data.checks.metric_tensors import check_tensors
from equipoise.divergences import Alpha, ChiSquare, Divergence
from equipoise.kernels import Gaussian, PowerLaw, RegularizedPowerLaw, StudentT

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.objectives.autograd.curved import curved  # noqa: E402
from equipoise.objectives.autograd.pairs import on_tensor  # noqa: E402

N, DIM = 24, 5
ANY_KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
DIVERGENCES = pytest.mark.parametrize(
    "divergence", [Alpha(-1.0), Alpha(0.0), Alpha(-0.5), Alpha(-1.6), Alpha(1.0), ChiSquare()], ids=repr
)


class Reverse(Divergence):
    """A user-defined divergence in NumPy."""

    def value(self, t):
        return t * np.log(t)

    def slope(self, t):
        return np.log(t) + 1


# Each metric with its derivative, in NumPy: G, (d, d) or (n, d, d), and dG[i, c] = ∂G/∂y_ic.
def identity(Y):
    return torch.eye(Y.shape[1], dtype=Y.dtype, device=Y.device)


def covariance_metric(Y):
    """g(y_1, …, y_n): one metric for all points, from the covariance of the map, as in the paper."""
    return torch.eye(2, dtype=Y.dtype, device=Y.device) + Y.T @ Y / len(Y)


def covariance_metric_slope(Y):
    n, d = Y.shape
    dG = np.zeros((n, d, d, d))
    for c in range(d):
        dG[:, c, c, :] += Y / n
        dG[:, c, :, c] += Y / n
    return np.eye(2) + Y.T @ Y / n, dG


def local_metric(Y):
    """A metric at each point: skewed, and growing with the distance from the origin."""
    skew = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=Y.dtype, device=Y.device)
    return (1 + (Y**2).sum(dim=1))[:, None, None] * skew + 0.2 * Y[:, :, None] * Y[:, None, :]


def local_metric_slope(Y):
    n, d = Y.shape
    skew, dG = np.array([[2.0, 0.3], [0.3, 1.0]]), np.zeros((n, d, n, d, d))
    for i in range(n):
        for c in range(d):
            dG[i, c, i] = 2 * Y[i, c] * skew
            dG[i, c, i, c, :] += 0.2 * Y[i]
            dG[i, c, i, :, c] += 0.2 * Y[i]
    return (1 + (Y**2).sum(axis=1))[:, None, None] * skew + 0.2 * Y[:, :, None] * Y[:, None, :], dG


METRICS = pytest.mark.parametrize(
    ("g", "slope"), [(covariance_metric, covariance_metric_slope), (local_metric, local_metric_slope)]
)


def closed_form(P, Y, kernel, divergence, G, dG, direction=None):
    """Return ∂E/∂y_i by docs/math.md, eq. (G1) and (G2): Lin et al. 2024, eq. (19), with the metric included."""
    n = len(Y)
    diff = Y[:, None] - Y
    M = np.broadcast_to(G, (n, n, 2, 2)) if G.ndim == 2 else (G[:, None] + G) / 2
    dM = (
        np.broadcast_to(dG[:, :, None, None], (n, 2, n, n, 2, 2))
        if G.ndim == 2
        else (dG[:, :, :, None] + dG[:, :, None]) / 2
    )
    d2 = np.einsum("klm,klmn,kln->kl", diff, M, diff) + np.eye(n)
    off = 1 - np.eye(n)
    k, slope = off * kernel.value(d2), off * kernel.slope(d2)
    Z = k.sum()
    f = off * divergence.slope(k / Z / (P + np.eye(n)) + np.eye(n))
    weight = slope / Z * (f - (f * k).sum() / Z)  # ∂E/∂d2_kl
    along = M if direction is None else np.broadcast_to(direction, M.shape)
    straight = 4 * np.einsum("ij,ijmn,ijn->im", weight, along, diff)
    bent = np.einsum("kl,icklmn,klm,kln->ic", weight, dM, diff, diff)
    return straight + bent


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, DIM))


def method(kernel=None, divergence=None, **options):
    return eq.SymmetricSNE(
        kernel=kernel, divergence=divergence, perplexity=7, random_state=0, engine="reference", **options
    )


def assert_same_balance(found, truth, rtol=1e-9, same_stiffness=True):
    for name in ("attraction", "repulsion"):
        mine, theirs = getattr(found, name), getattr(truth, name)
        assert_allclose(mine, theirs, atol=rtol * np.abs(theirs).max(), rtol=0)
    assert_allclose(found.loss, truth.loss, rtol=rtol)
    if same_stiffness:  # DenseDivergence's stiffness counts self pairs, which exert no force
        assert_allclose(found.stiffness, truth.stiffness, rtol=rtol)


@ANY_KERNEL
@DIVERGENCES
def test_identity_metric_gives_the_flat_losses(kernel, divergence, X, rng):
    flat = method(kernel, divergence).problem(X)
    Y = 2 * kernel.length * rng.standard_normal((N, 2))
    bent = curved(flat.objective, identity)
    for exaggeration in (1.0, 4.0):
        options = {"loss": True, "exaggeration": exaggeration}
        found = bent.balance(Y, flat.engine, **options)
        truth = flat.objective.balance(Y, flat.engine, **options)
        assert_same_balance(found, truth, same_stiffness=divergence.s is not None)


@pytest.mark.parametrize("kernel", [UserKernel(), PowerLaw()], ids=repr)
def test_user_kernels_and_divergences_run_unchanged(kernel, X, rng):
    flat, Y = method(kernel, Reverse()).problem(X), 2 * rng.standard_normal((N, 2))
    found = curved(flat.objective, identity).balance(Y, flat.engine, loss=True)
    assert_same_balance(found, flat.objective.balance(Y, flat.engine, loss=True), same_stiffness=False)


@pytest.mark.parametrize("scale", [1.0, 30.0])  # at 30 the Gaussian underflows for all pairs
def test_identity_metric_gives_original_sne(scale, X, rng):
    flat, Y = eq.SNE(perplexity=7, engine="reference", random_state=0).problem(X), scale * rng.standard_normal((N, 2))
    found = curved(flat.objective, identity).balance(Y, flat.engine, loss=True, exaggeration=2.0)
    assert_same_balance(found, flat.objective.balance(Y, flat.engine, loss=True, exaggeration=2.0))


def test_constant_function_equals_constant_metric(X, rng):
    G, Y = np.array([[2.0, 0.5], [0.5, 1.0]]), rng.standard_normal((N, 2))
    truth = eq.TSNE(perplexity=7, g=G, engine="reference").problem(X)
    for g in (
        lambda Y: torch.tensor(G),
        lambda Y: torch.tensor(G).expand(len(Y), 2, 2),
        lambda Y: torch.tensor(G) + 0 * Y.sum(),
    ):
        problem = eq.TSNE(perplexity=7, g=g, engine="reference").problem(X)
        for name in ("loss", "gradient", "attraction", "repulsion"):
            assert_allclose(getattr(problem, name)(Y), getattr(truth, name)(Y), rtol=1e-10, atol=1e-12)


@METRICS
@pytest.mark.parametrize("divergence", [Alpha(-1.0), Alpha(0.0), Alpha(-0.5), ChiSquare()], ids=repr)
@pytest.mark.parametrize(
    "kernel", [Gaussian(), StudentT(), RegularizedPowerLaw(3.0, 0.1), PowerLaw(2.0, 0.3)], ids=repr
)
def test_autograd_matches_the_closed_form(g, slope, divergence, kernel, X, rng):
    problem, Y = method(kernel, divergence, g=g).problem(X), 0.7 * rng.standard_normal((N, 2))
    truth = closed_form(problem.affinities, Y, kernel, divergence, *slope(Y))
    assert_allclose(problem.gradient(Y), truth, atol=1e-10 * np.abs(truth).max(), rtol=0)


@METRICS
@pytest.mark.parametrize(
    "make",
    [
        *(lambda g, a=a: eq.GSNE(alpha=a, perplexity=7, g=g, engine="reference") for a in (-1.0, 0.0, -0.5, 1.0)),
        lambda g: eq.TSNE(perplexity=7, g=g, engine="reference"),
        lambda g: eq.PowerSNE(perplexity=7, r0=0.3, g=g, engine="reference"),
        lambda g: eq.SNE(perplexity=7, g=g, engine="reference"),
        lambda g: method(UserKernel(), ChiSquare(), g=g),
    ],
)
def test_autograd_matches_finite_differences(make, g, slope, X, rng):
    problem, Y = make(g).problem(X), 0.7 * rng.standard_normal((N, 2))
    truth = differences(problem.loss, Y)
    assert_allclose(problem.gradient(Y), truth, atol=1e-6 * np.abs(truth).max(), rtol=0)


def test_printed_equation_19_omits_the_metric_and_diagonal_terms(X, rng):
    """Lin et al. 2024, eq. (19) as printed: y_i − y_j instead of g (y_i − y_j), and ∂g_mn only for m ≠ n."""
    problem, Y = method(StudentT(), g=covariance_metric).problem(X), 0.7 * rng.standard_normal((N, 2))
    truth, (G, dG) = problem.gradient(Y), covariance_metric_slope(Y)

    def error(direction, derivative):
        found = closed_form(problem.affinities, Y, StudentT(), Alpha(-1.0), G, derivative, direction)
        return np.abs(found - truth).max() / np.abs(truth).max()

    off_diagonal = dG * (1 - np.eye(2))
    assert error(G, dG) < 1e-10
    assert error(np.eye(2), dG) > 0.05 and error(G, off_diagonal) > 0.05 and error(np.eye(2), off_diagonal) > 0.05


def test_metric_derivatives_match_finite_differences(rng):
    Y = rng.standard_normal((4, 2))
    for g, slope in ((covariance_metric, covariance_metric_slope), (local_metric, local_metric_slope)):
        G, dG = slope(Y)
        assert_allclose(g(torch.tensor(Y)).numpy(), G)
        for i, c in np.ndindex(4, 2):
            step = np.zeros_like(Y)
            step[i, c] = 1e-6
            assert_allclose((slope(Y + step)[0] - slope(Y - step)[0]) / 2e-6, dG[i, c], atol=1e-8)


@ANY_KERNEL
def test_kernels_of_tensors_match_numpy(kernel, rng):
    d2 = np.concatenate([[0.0], rng.random(50) * 9, [1e6]])
    for formula in (kernel.value, kernel.slope, kernel.log_value, kernel.log_slope):
        found, truth = formula(torch.tensor(d2)), formula(d2)
        assert arrays.is_tensor(found) and found.dtype == torch.float64
        assert_allclose(found.numpy(), truth, rtol=1e-12, atol=1e-300)


@DIVERGENCES
def test_divergences_of_tensors_match_numpy(divergence, rng):
    t = np.concatenate([[1e-9], rng.random(50) * 3, [1e3]])
    for formula in (divergence.value, divergence.slope):
        assert_allclose(formula(torch.tensor(t)).numpy(), formula(t), rtol=1e-9, atol=1e-12)


def test_numpy_only_formula_raises_on_a_device():
    elsewhere = torch.ones(3, dtype=torch.float64, device="meta")  # rejects NumPy conversion like a GPU tensor
    with pytest.raises(TypeError, match=r"Reverse.slope does not accept PyTorch tensors .* functions of array"):
        on_tensor(Reverse().slope, elsewhere)
    assert on_tensor(UserKernel().value, elsewhere).device.type == "meta"


def test_coincident_points_at_a_cusp_give_finite_gradients(X, rng):
    problem, Y = (
        method(RegularizedPowerLaw(1.2, 0.5), Alpha(-0.5), g=local_metric).problem(X),
        rng.standard_normal((N, 2)),
    )
    Y[1] = Y[0]
    assert np.isfinite(problem.loss(Y)) and np.isfinite(problem.gradient(Y)).all()


@pytest.mark.parametrize("Method", [eq.SNE, eq.SymmetricSNE, eq.TSNE, eq.PowerSNE, eq.GSNE])
def test_every_method_lowers_the_loss_under_a_metric(Method, X):
    fitted = Method(perplexity=5, g=local_metric, n_iter=60, early_exaggeration=2.0, random_state=0).fit(X)
    assert fitted.loss_ < fitted.loss_curve_[0, 1] and fitted.embedding_.shape == (N, 2)
    assert fitted.engine_ == "autograd"
    again = Method(perplexity=5, g=local_metric, n_iter=60, early_exaggeration=2.0, random_state=0).fit(X)
    assert_array_equal(fitted.embedding_, again.embedding_)


def test_map_under_a_ball_metric_stays_in_the_ball():
    X = digits()

    def ball(Y):
        inside = (Y**2).sum(dim=1).clamp(max=0.95 * 4**2) / 4**2
        return (1 - inside)[:, None, None] ** -2 * torch.eye(2, dtype=Y.dtype)

    flat = eq.TSNE(random_state=0).fit(X)
    bent = eq.TSNE(g=ball, random_state=0).fit(X)
    assert np.linalg.norm(flat.embedding_, axis=1).max() > 4 > np.linalg.norm(bent.embedding_, axis=1).max()
    assert bent.loss_ < 1.25 * flat.loss_


def digits(n=120):
    from equipoise import data

    return data.load("digits").X[:n]


def test_metric_works_with_sparse_affinities_and_the_torch_engine(X, rng):
    Y = rng.standard_normal((N, 2))
    uniform = eq.TSNE(perplexity=5, affinity="uniform", g=identity, random_state=0)
    truth = eq.TSNE(perplexity=5, affinity="uniform", random_state=0)
    assert_allclose(uniform.problem(X).gradient(Y), truth.problem(X).gradient(Y), atol=1e-7)
    runs = [
        eq.TSNE(perplexity=5, g=local_metric, engine=name, n_iter=20, random_state=0).fit(X)
        for name in ("exact", "torch")
    ]
    assert_allclose(runs[1].loss_, runs[0].loss_, rtol=1e-3)
    given = eq.TSNE(perplexity=5, g=local_metric, engine="torch", device="cpu", n_iter=20, random_state=0)
    Y = given.fit_transform(torch.tensor(X))
    assert arrays.is_tensor(Y) and Y.shape == (N, 2)


def test_fitted_method_with_a_metric_can_be_pickled(X):
    fitted = eq.TSNE(perplexity=5, g=covariance_metric, n_iter=5, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    Y = fitted.embedding_.astype(np.float64)
    assert again._problem.loss(Y) == fitted._problem.loss(Y)


def test_unsupported_uses_of_a_function_g_raise(X, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r'needs exact sums .* engine=.grid. does not compute; use engine="exact"'):
        eq.TSNE(g=local_metric, engine="grid").fit(X)
    with pytest.raises(ValueError, match="Checkpoint does not support a function g"):
        eq.TSNE(g=local_metric, random_state=0, callbacks=[eq.Checkpoint(tmp_path / "run.eqc")]).fit(X)
    with pytest.raises(ValueError, match="SphericalSNE uses the metric of the sphere"):
        eq.SphericalSNE(g=local_metric, perplexity=5).fit(X)
    fitted = eq.TSNE(g=local_metric, perplexity=5, n_iter=1).fit(X)
    with pytest.raises(ValueError, match="transform is not available if g is a function"):
        fitted.transform(X[:2] + 1)
    with pytest.raises(TypeError, match="forces depend on the positions of two points"):
        fitted.pair_forces(np.ones(3))
    with pytest.raises(TypeError, match="the order of the points cannot change"):
        fitted._problem.objective.permuted(np.arange(N))
    with pytest.raises(ValueError, match=r"g cannot be saved: function local_metric is not .*; save the map"):
        eq.save(fitted, tmp_path / "map.eq")
    monkeypatch.setattr("equipoise.methods.sne.available_memory", lambda: 1e4)
    with pytest.raises(MemoryError, match=r"all pairs of 24 points in float64, which needs about 1.38e-05 GB"):
        eq.TSNE(g=local_metric, perplexity=5).fit(X)


@pytest.mark.parametrize(
    ("g", "error", "message"),
    [
        (
            lambda Y: torch.ones(3, 3),
            ValueError,
            r"\(2, 2\) or one per point \(24, 2, 2\); it returned shape \(3, 3\)",
        ),
        (lambda Y: np.eye(2), TypeError, "must return a PyTorch tensor computed from Y, got ndarray"),
        (lambda Y: torch.tensor([[1.0, 2.0], [0.0, 1.0]]), ValueError, "must be symmetric, but is not$"),
        (lambda Y: torch.eye(2) / 0 * Y[0, 0], ValueError, "contains NaN or inf$"),
        (lambda Y: torch.eye(2) * (torch.arange(24) - 3)[:, None, None] ** 2, ValueError, "at point 3 is 0"),
    ],
)
def test_invalid_return_values_of_g_raise(g, error, message, X):
    with pytest.raises(error, match=message):
        eq.TSNE(g=g, perplexity=5).problem(X)


def test_invalid_metric_tensors_name_their_point():
    stack = np.tile(np.eye(2), (4, 1, 1))
    stack[2, 0, 1] = 0.5
    with pytest.raises(ValueError, match=r"h\(X\) must be symmetric, but is not at point 2"):
        check_tensors(stack, "h(X)", 4, 2)
    stack[1, 0, 0] = np.nan
    with pytest.raises(ValueError, match=r"h\(X\) must be finite, but contains NaN or inf at point 1"):
        check_tensors(stack, "h(X)", 4, 2)


def test_physical_memory_is_infinite_where_unknown(monkeypatch, tmp_path):
    assert room.physical_memory() > 1e8
    monkeypatch.setattr(room, "OWN_GROUPS", tmp_path / "none")  # as if nothing limited this process
    monkeypatch.setattr(room, "RESOURCE_LIMITS", ())

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown, raising=False)
    assert room.physical_memory() == np.inf


@needs("docs")
def test_autograd_guide_runs():
    page = ROOT / "docs" / "autograd.md"
    namespace = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(code, namespace)
    assert namespace["problem"].loss(namespace["Y"]) < 0.8 * namespace["problem"].loss(namespace["start"])
    assert namespace["Y_new"].shape == (50, 2)


def test_missing_pytorch_raises_with_install_hint(monkeypatch, X):
    monkeypatch.setitem(sys.modules, "torch", None)
    for act in (lambda: eq.LossProblem(sum, X), lambda: eq.TSNE(g=local_metric).fit(X)):
        with pytest.raises(ImportError, match=r'pip install "equipoise\[gpu\]"'):
            act()


def test_import_does_not_import_pytorch():
    code = "import sys, equipoise; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

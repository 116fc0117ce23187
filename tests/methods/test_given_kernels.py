"""The kernel of SNE and the constants a and b of UMAP as parameters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits
from support.cases import UserKernel, differences, relative_error
from support.methods import LABELS, NEW, X, brief

import equipoise as eq
from equipoise.kernels import Gaussian, Membership, StudentT

N = 24


@pytest.fixture
def table(rng):
    return rng.standard_normal((N, 4)) + 2 * (np.arange(N)[:, None] % 2)


def rows_of(problem, Y):
    """Return P, d2 and the Cauchy affinities with rows normalised, q_{j|i} = (1 + d2)⁻¹ / Σ_l (1 + d2_il)⁻¹."""
    d2 = ((Y[:, None] - Y) ** 2).sum(axis=2)
    q = np.where(np.eye(N), 0.0, 1 / (1 + d2))
    return np.asarray(problem.affinities, dtype=np.float64), d2, q / q.sum(axis=1, keepdims=True)


def test_sne_with_the_student_kernel_is_tsne_of_the_slides(table, rng):
    problem = eq.SNE(kernel=StudentT(), engine="reference", random_state=0).problem(table)
    Y, off = rng.standard_normal((N, 2)), ~np.eye(N, dtype=bool)
    P, d2, Q = rows_of(problem, Y)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-9)
    assert_allclose(problem.loss(Y), (P[off] * np.log(P[off] / Q[off])).sum(), rtol=1e-12)
    assert relative_error(problem.gradient(Y), differences(problem.loss, Y)) < 1e-7
    weights = (P + P.T - Q - Q.T) / (1 + d2)
    own = 2 * np.einsum("ij,ijd->id", weights, Y[:, None] - Y)
    assert relative_error(problem.gradient(Y), own) < 1e-12
    printed = 4 * np.einsum("ij,ijd->id", (P - Q) / (1 + d2), Y[:, None] - Y)  # belongs to the joint affinities
    assert np.linalg.norm(printed - own) > 0.1 * np.linalg.norm(own)


def test_printed_gradient_belongs_to_joint_affinities(table, rng):
    problem = eq.TSNE(engine="reference", random_state=0).problem(table)
    Y = rng.standard_normal((N, 2))
    P, d2, _ = rows_of(problem, Y)
    Q = np.where(np.eye(N), 0.0, 1 / (1 + d2))
    printed = 4 * np.einsum("ij,ijd->id", (P - Q / Q.sum()) / (1 + d2), Y[:, None] - Y)
    assert relative_error(problem.gradient(Y), printed) < 1e-12


def test_default_kernel_of_sne_is_gaussian():
    assert eq.SNE().get_params()["kernel"] is None
    one, two = (eq.SNE(kernel=k, random_state=0, n_iter=30, perplexity=6).fit(X) for k in (None, Gaussian()))
    assert one.embedding_.tobytes() == two.embedding_.tobytes()


@pytest.mark.parametrize("engine", ["exact", "grid"])
@pytest.mark.parametrize("kernel", [StudentT(), UserKernel()], ids=repr)
def test_sne_with_a_heavy_tail_separates_digits(kernel, engine):
    digits, y = load_digits(n_class=6, return_X_y=True)
    method = eq.SNE(kernel=kernel, engine=engine, random_state=0, n_iter=150).fit(digits[:300])
    near = ((method.embedding_[:, None] - method.embedding_) ** 2).sum(axis=2) + 1e9 * np.eye(300)
    assert (y[near.argmin(axis=1)] == y[:300]).mean() > 0.95
    assert np.isfinite(method.transform(digits[300:305])).all()


@pytest.mark.parametrize("Method", [eq.SNE, eq.SymmetricSNE])
def test_invalid_kernels_raise(Method):
    with pytest.raises(ValueError, match=r"kernel must be an equipoise\.kernels\.Kernel or None, got 'student'"):
        Method(kernel="student").fit(X)


def test_umap_uses_a_and_b(rng):
    method = eq.UMAP(a=1.0, b=1.0)
    assert method.output_kernel() == Membership(1.0, 1.0)
    d2 = np.geomspace(1e-3, 1e3, 20)
    assert_allclose(method.output_kernel().value(d2), 1 / (1 + d2), rtol=1e-14)
    a, b = (getattr(eq.UMAP().output_kernel(), name) for name in "ab")
    assert eq.UMAP(a=a, b=b).output_kernel() == eq.UMAP().output_kernel()


@pytest.mark.parametrize("engine", ["exact", "grid", "sampled", "negative_sampling"])
def test_fitted_constants_give_the_same_bytes(engine):
    curve = eq.UMAP().output_kernel()
    loss = "intended" if engine == "sampled" else "effective"
    fitted, given = (
        brief(eq.UMAP, engine=engine, loss=loss, **constants).fit(X)
        for constants in ({}, {"a": curve.a, "b": curve.b, "min_dist": 0.5})
    )
    assert fitted.embedding_.tobytes() == given.embedding_.tobytes()
    other = clone(given).set_params(a=1.0, b=1.0).fit(X)
    assert other.embedding_.tobytes() != given.embedding_.tobytes()
    assert np.isfinite(other.transform(NEW)).all()


def test_umap_with_a_and_b_keeps_them_in_a_file(tmp_path):
    method = brief(eq.UMAP, a=1.0, b=1.0).fit(X, LABELS)
    eq.save(method, tmp_path / "umap.eqz")
    loaded = eq.load(tmp_path / "umap.eqz")
    assert (loaded.a, loaded.b) == (1.0, 1.0)
    assert loaded.transform(NEW).tobytes() == method.transform(NEW).tobytes()


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"a": 0.0, "b": 1.0}, "a must be a positive number or None, got 0.0"),
        ({"a": 1.0, "b": "one"}, "b must be a positive number or None, got 'one'"),
        ({"a": 1.0}, "a was given without b; give both, or use None for both to fit them"),
        ({"b": 1.0}, "b was given without a; give both, or use None for both to fit them"),
    ],
)
def test_invalid_constants_raise(constants, message):
    with pytest.raises(ValueError, match=message):
        eq.UMAP(**constants).fit(X)

"""Metrics g(y) and h(x) and losses of one's own: against flat losses, the closed form of eq. (G1), and differences."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import KERNELS
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import equipoise as eq
from equipoise import arrays, room
from equipoise.divergences import Alpha, ChiSquare, Divergence
from equipoise.kernels import Gaussian, Kernel, PowerLaw, RegularizedPowerLaw, StudentT
from equipoise.metric_tensors import check_tensors

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.objectives.autograd import curved  # noqa: E402
from equipoise.objectives.pairs import on_tensor  # noqa: E402

N, DIM = 24, 5
ANY_KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
DIVERGENCES = pytest.mark.parametrize(
    "divergence", [Alpha(-1.0), Alpha(0.0), Alpha(-0.5), Alpha(-1.6), Alpha(1.0), ChiSquare()], ids=repr
)


@dataclass(frozen=True)
class Loop(Kernel):
    """As a user writes it, with operators."""

    def value(self, d2):
        return (1 + d2) ** -1.5

    def slope(self, d2):
        return -1.5 * (1 + d2) ** -2.5


class Reverse(Divergence):
    """As a user writes it, with NumPy."""

    def value(self, t):
        return t * np.log(t)

    def slope(self, t):
        return np.log(t) + 1


# Each metric with its derivative, in NumPy: G, (d, d) or (n, d, d), and dG[i, c] = ∂G/∂y_ic.
def identity(Y):
    return torch.eye(Y.shape[1], dtype=Y.dtype, device=Y.device)


def spread_out(Y):
    """g(y_1, …, y_n): one metric for all, from how the map is spread, as in the paper."""
    return torch.eye(2, dtype=Y.dtype) + Y.T @ Y / len(Y)


def spread_out_slope(Y):
    n, d = Y.shape
    dG = np.zeros((n, d, d, d))
    for c in range(d):
        dG[:, c, c, :] += Y / n
        dG[:, c, :, c] += Y / n
    return np.eye(2) + Y.T @ Y / n, dG


def local(Y):
    """A metric at each point: stretched with its place, and skewed."""
    skew = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=Y.dtype)
    return (1 + (Y**2).sum(dim=1))[:, None, None] * skew + 0.2 * Y[:, :, None] * Y[:, None, :]


def local_slope(Y):
    n, d = Y.shape
    skew, dG = np.array([[2.0, 0.3], [0.3, 1.0]]), np.zeros((n, d, n, d, d))
    for i in range(n):
        for c in range(d):
            dG[i, c, i] = 2 * Y[i, c] * skew
            dG[i, c, i, c, :] += 0.2 * Y[i]
            dG[i, c, i, :, c] += 0.2 * Y[i]
    return (1 + (Y**2).sum(axis=1))[:, None, None] * skew + 0.2 * Y[:, :, None] * Y[:, None, :], dG


METRICS = pytest.mark.parametrize(("g", "slope"), [(spread_out, spread_out_slope), (local, local_slope)])


def closed_form(P, Y, kernel, divergence, G, dG):
    """∂E/∂y_i by docs/math.md, eq. (G1) and (G2): Lin et al. 2024, eq. (19), with its slips mended. d2 = r²."""
    n = len(Y)
    diff = Y[:, None] - Y
    M = np.broadcast_to(G, (n, n, 2, 2)) if G.ndim == 2 else (G[:, None] + G) / 2
    dM = np.broadcast_to(dG[:, :, None, None], (n, 2, n, n, 2, 2)) if G.ndim == 2 else (dG[:, :, :, None] + dG[:, :, None]) / 2
    d2 = np.einsum("klm,klmn,kln->kl", diff, M, diff) + np.eye(n)
    off = 1 - np.eye(n)
    k, slope = off * kernel.value(d2), off * kernel.slope(d2)
    Z = k.sum()
    f = off * divergence.slope(k / Z / (P + np.eye(n)) + np.eye(n))
    weight = slope / Z * (f - (f * k).sum() / Z)  # ∂E/∂d2_kl
    straight = 4 * np.einsum("ij,ijmn,ijn->im", weight, M, diff)
    bent = np.einsum("kl,icklmn,klm,kln->ic", weight, dM, diff, diff)
    return straight + bent


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, DIM))


def method(kernel=None, divergence=None, **options):
    return eq.SymmetricSNE(
        kernel=kernel, divergence=divergence, perplexity=7, random_state=0, engine="reference", **options
    )


def differences(f, Y, h=1e-5):
    found = np.zeros_like(Y)
    for at in np.ndindex(*Y.shape):
        step = np.zeros_like(Y)
        step[at] = h
        found[at] = (f(Y + step) - f(Y - step)) / (2 * h)
    return found


def assert_same_balance(found, truth, rtol=1e-9, same_stiffness=True):
    for name in ("attraction", "repulsion"):
        mine, theirs = getattr(found, name), getattr(truth, name)
        assert_allclose(mine, theirs, atol=rtol * np.abs(theirs).max(), rtol=0)
    assert_allclose(found.loss, truth.loss, rtol=rtol)
    if same_stiffness:  # that of DenseDivergence counts a point's force on itself, which is none
        assert_allclose(found.stiffness, truth.stiffness, rtol=rtol)


@ANY_KERNEL
@DIVERGENCES
def test_the_flat_metric_gives_the_flat_losses(kernel, divergence, X, rng):
    flat = method(kernel, divergence).problem(X)
    Y = 2 * kernel.length * rng.standard_normal((N, 2))
    bent = curved(flat.objective, identity, "cpu")
    for exaggeration in (1.0, 4.0):
        options = {"loss": True, "exaggeration": exaggeration}
        found = bent.balance(Y, flat.engine, **options)
        truth = flat.objective.balance(Y, flat.engine, **options)
        assert_same_balance(found, truth, same_stiffness=divergence.s is not None)


@pytest.mark.parametrize("kernel", [Loop(), PowerLaw()], ids=repr)
def test_own_kernels_and_divergences_run_as_they_are(kernel, X, rng):
    flat, Y = method(kernel, Reverse()).problem(X), 2 * rng.standard_normal((N, 2))
    found = curved(flat.objective, identity, "cpu").balance(Y, flat.engine, loss=True)
    assert_same_balance(found, flat.objective.balance(Y, flat.engine, loss=True), same_stiffness=False)


@pytest.mark.parametrize("scale", [1.0, 30.0])  # at 30 the Gaussian reaches no other point
def test_the_flat_metric_gives_original_sne(scale, X, rng):
    flat, Y = eq.SNE(perplexity=7, engine="reference", random_state=0).problem(X), scale * rng.standard_normal((N, 2))
    found = curved(flat.objective, identity, "cpu").balance(Y, flat.engine, loss=True, exaggeration=2.0)
    assert_same_balance(found, flat.objective.balance(Y, flat.engine, loss=True, exaggeration=2.0))


def test_a_constant_function_is_the_constant(X, rng):
    G, Y = np.array([[2.0, 0.5], [0.5, 1.0]]), rng.standard_normal((N, 2))
    truth = eq.TSNE(perplexity=7, g=G, engine="reference").problem(X)
    for g in (lambda Y: torch.tensor(G), lambda Y: torch.tensor(G).expand(len(Y), 2, 2), lambda Y: torch.tensor(G) + 0 * Y.sum()):
        problem = eq.TSNE(perplexity=7, g=g, engine="reference").problem(X)
        for name in ("loss", "gradient", "attraction", "repulsion"):
            assert_allclose(getattr(problem, name)(Y), getattr(truth, name)(Y), rtol=1e-10, atol=1e-12)


@METRICS
@pytest.mark.parametrize("divergence", [Alpha(-1.0), Alpha(0.0), Alpha(-0.5), ChiSquare()], ids=repr)
@pytest.mark.parametrize("kernel", [Gaussian(), StudentT(), RegularizedPowerLaw(3.0, 0.1), PowerLaw(2.0, 0.3)], ids=repr)
def test_autograd_is_the_closed_form(g, slope, divergence, kernel, X, rng):
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
        lambda g: method(Loop(), ChiSquare(), g=g),
    ],
)
def test_autograd_is_the_slope_of_the_loss(make, g, slope, X, rng):
    problem, Y = make(g).problem(X), 0.7 * rng.standard_normal((N, 2))
    truth = differences(problem.loss, Y)
    assert_allclose(problem.gradient(Y), truth, atol=1e-6 * np.abs(truth).max(), rtol=0)


def test_the_derivatives_of_the_test_are_right(rng):
    Y = rng.standard_normal((4, 2))
    for g, slope in ((spread_out, spread_out_slope), (local, local_slope)):
        G, dG = slope(Y)
        assert_allclose(g(torch.tensor(Y)).numpy(), G)
        for i, c in np.ndindex(4, 2):
            step = np.zeros_like(Y)
            step[i, c] = 1e-6
            assert_allclose((slope(Y + step)[0] - slope(Y - step)[0]) / 2e-6, dG[i, c], atol=1e-8)

"""Objectives written once give NumPy's forces and losses for arrays of every library."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import sparse
from support.library_engine import LibraryEngine
from support.methods import CLASSICAL, X, brief, over
from support.namespaces import every_library, numpy_of

import equipoise as eq
from equipoise.arrays.device_csr import Rows
from equipoise.divergences import Alpha, Beta, ChiSquare, Gamma, JensenShannon, NeRV, Renyi
from equipoise.engines import Reference
from equipoise.linalg.gram import Factor, Inner
from equipoise.methods import ALL
from equipoise.objectives import DenseDivergence, GramLoss
from equipoise.objectives.double_kernel import signed_entries

WITH_ENGINES = [M for M in ALL if "engine" in M().get_params() and M not in (*CLASSICAL, eq.MDS)]
MORE = [eq.GSNE(alpha=a) for a in (-0.5, 1.0)] + [
    eq.SymmetricSNE(divergence=ChiSquare()),
    eq.SymmetricSNE(divergence=Alpha(0.98)),
    *(
        eq.SymmetricSNE(kernel=eq.kernels.StudentT(), divergence=divergence)
        for divergence in (Renyi(0.7), Beta(1.5), Gamma(0.5), NeRV(0.3), JensenShannon())
    ),
    eq.SNE(kernel=eq.kernels.StudentT()),
    eq.UMAP(loss="intended"),
]
METHODS = [brief(M, engine="reference") for M in WITH_ENGINES] + [
    m.set_params(engine="reference", random_state=0, **({} if isinstance(m, eq.UMAP) else {"perplexity": 6}))
    for m in MORE
]
every_objective = pytest.mark.parametrize("method", METHODS, ids=lambda m: repr(m).replace("\n", ""))
RTOL = 1e-12


def assert_close(found, expected, library):
    assert type(found) is type(library(np.zeros(1)))
    assert_allclose(numpy_of(found), expected, rtol=0, atol=RTOL * np.abs(expected).max())


def assert_same_balance(found, expected, library):
    assert_close(found.attraction, expected.attraction, library)
    assert_close(found.repulsion, expected.repulsion, library)
    assert_allclose([float(found.loss), float(found.stiffness)], [expected.loss, expected.stiffness], rtol=RTOL)


@every_library
@every_objective
def test_balance_matches_numpy_in_every_library(library, method, rng):
    objective, engine = method.problem(X).objective, LibraryEngine(library)
    Y = objective.kernel.length * rng.standard_normal((len(X), 2))
    expected = objective.balance(Y, Reference(), loss=True, exaggeration=2.0)
    found = objective.to(engine.placement).balance(library(Y), engine, loss=True, exaggeration=2.0)
    assert_same_balance(found, expected, library)


@every_library
@every_objective
def test_forces_on_new_points_match_numpy_in_every_library(library, method, rng):
    objective, engine = method.problem(X).objective, LibraryEngine(library)
    if isinstance(objective, DenseDivergence):
        with pytest.raises(ValueError, match="transform needs an Alpha divergence"):
            objective.to(engine.placement).freeze(library(np.zeros((len(X), 2))), engine)
        return
    Y, new = (objective.kernel.length * rng.standard_normal((n, 2)) for n in (len(X), 5))
    P = sparse.random(5, len(X), 0.2, format="csr", random_state=0)
    expected = objective.freeze(Y, Reference(), 2.0)(new, P, Y)
    found = objective.to(engine.placement).freeze(library(Y), engine, 2.0)(library(new), P, library(Y))
    assert_close(found, expected, library)


@every_library
@every_objective
def test_pair_forces_match_numpy_in_every_library(library, method):
    objective, r = method.problem(X).objective, np.geomspace(0.05, 20, 30)
    found, expected = (objective.pair_forces(distances, 0.02, 3.0) for distances in (library(r), r))
    assert_close(found[0], expected[0], library)
    assert_close(found[1], expected[1], library)


@every_library
@over(CLASSICAL)
def test_closed_form_losses_match_numpy_in_every_library(library, Method, rng):
    objective = brief(Method, engine="auto", device="cpu").problem(X).objective
    U = rng.standard_normal((len(X), 2))
    expected = objective.balance(U, Reference(), loss=True, exaggeration=2.0)
    assert_same_balance(objective.balance(library(U), None, loss=True, exaggeration=2.0), expected, library)
    assert objective.loss(library(U)) == pytest.approx(objective.loss(U), rel=1e-11)
    (values, V), (found, W) = objective.aligned(U), objective.aligned(library(U))
    assert_allclose(found, values, rtol=1e-10)
    assert_allclose(np.abs(numpy_of(W)), np.abs(V), atol=1e-10 * np.abs(V).max())


@every_library
def test_gram_products_convert_between_libraries_and_precisions(library, rng):
    D2, V = rng.random((20, 20)), rng.standard_normal((20, 2))
    D2 += D2.T
    for make, data in ((Inner, D2), (Factor, rng.standard_normal((20, 4)))):
        expected = make(data.copy()).product(V)
        for source in (library(data.copy()), torch.from_numpy(data.astype(np.float32))):
            found = make(source).product(library(V))
            assert type(found) is type(library(V))
            assert_allclose(numpy_of(found), expected, atol=1e-5)


@every_library
def test_dense_divergence_names_the_first_pair_without_affinity(library):
    P = np.full((4, 4), 0.1)
    P[1, 2] = P[3, 0] = 0.0
    with pytest.raises(ValueError, match=r"P is 0 for 2 of 12 pairs, the first at \[1, 2\]; raise the perplexity"):
        DenseDivergence(library(P), eq.kernels.StudentT(), ChiSquare())


@pytest.mark.parametrize("sign", [-1, 1])
def test_signed_entries_of_a_device_matrix_match_scipy(sign, rng):
    M = sparse.csr_matrix(np.where(rng.random((30, 30)) < 0.3, rng.standard_normal((30, 30)), 0), dtype=np.float32)
    on_host = signed_entries(M, sign)
    on_device = signed_entries(Rows.of(M, torch.device("cpu")), sign).host()
    assert on_host.nnz and (np.sign(on_host.data) == sign).all() and not on_host.diagonal().any()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(on_device, name), getattr(on_host, name))


def test_counterexample_to_theorem_3_4_of_draganov_and_dohn(rng):
    """docs/math.md, section 15: the approximate gradient may point uphill although Y is the worse approximation."""
    U = np.linalg.qr(np.column_stack([np.ones(6), rng.standard_normal((6, 4))]))[0][:, 1:]
    values = np.array([1.0, 0.9, 0.5, 0.01])
    exact, low = (GramLoss(Factor(U[:, :r] * np.sqrt(values[:r]))) for r in (4, 2))
    Y = U[:, [2]] / 2
    true, approximate = (-sum(loss.balance(Y, None, loss=False)[:2]) for loss in (exact, low))
    G, low_rank = ((U[:, :r] * values[:r]) @ U[:, :r].T for r in (4, 2))
    assert np.linalg.norm(G - Y @ Y.T) > np.linalg.norm(G - low_rank)
    assert float((true * approximate).sum()) == pytest.approx(-0.25)
    error = np.linalg.norm(G - low_rank)
    assert np.linalg.norm(true - approximate) <= GramLoss(low.gram, error).gradient_error(Y) * (1 + 1e-12)

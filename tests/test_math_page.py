"""Every numbered equation of docs/math.md, written out in float64 with dense matrices, agrees with the code.

`EQUATIONS` holds a check for each number, those of losses and forces in support/math_equations.py; `ELSEWHERE` names
the tests of equations that have a file of their own. Sections without numbers are in test_math_sections.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from support.cases import differences, to_dense
from support.math_equations import D2, EQUATIONS, OFF, C, N, X, Y, build, close, equation, joint, over, springs

import equipoise as eq
from equipoise.evaluate import continuity, preservation_ratio, shepard, stress, trustworthiness
from equipoise.linalg.gram import Inner
from equipoise.linalg.landmark_choice import FromDistances, ridge_leverage
from equipoise.objectives import GramLoss

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "math.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not in the source distribution")

ELSEWHERE = {
    "A1": "affinities/test_fixed_kernels.py::test_affinities_match_the_closed_form",
    "A2": "affinities/test_random_walk.py::test_absorbing_markov_chain",
    "C1": "optimize/test_remaining_gain.py::test_gain_of_a_hyperbola_is_exact",
    "K1": "affinities/test_feature_kernels.py::test_pca_equals_classical_scaling_of_kernel_distances",
    "L1": "evaluate/test_local_isometry.py::test_linear_map_has_its_own_singular_values_everywhere",
    "L2": "evaluate/test_local_isometry.py::test_linear_map_has_its_own_singular_values_everywhere",
    "L3": "evaluate/test_local_isometry.py::test_points_that_coincide_in_the_map_have_stretch_zero",
    "L4": "evaluate/test_local_isometry.py::test_loadings_of_a_linear_map_are_its_matrix_times_the_deviations",
    "N1": "optimize/test_dynamics.py::test_harmonic_oscillator_matches_its_closed_form",
    "N2": "optimize/test_dynamics.py::test_energy_is_conserved_without_friction",
    "N3": "optimize/test_dynamics.py::test_leapfrog_has_its_known_frequency",
    "S1": "methods/test_mds_residuals.py::test_loss_and_forces_match_the_formula",
    "S2": "methods/test_mds_residuals.py::test_gradient_matches_finite_differences",
    "S3": "methods/test_mds_worst_case.py::test_loss_is_the_p_norm_of_the_residuals",
    "S4": "methods/test_mds_worst_case.py::test_four_points_reach_the_closed_form_and_the_bound_is_tight",
    "S5": "methods/test_mds_worst_case.py::test_bound_holds_for_random_spaces_and_is_zero_where_they_fit",
    "S6": "methods/test_mds_worst_case.py::test_bound_holds_for_random_spaces_and_is_zero_where_they_fit",
    "T1": "spaces/test_parallel_transport.py::test_flat_sheets_in_space_are_exact",
    "W1": "methods/test_learned_metric.py::test_losses_match_their_definitions",
    "W2": "methods/test_learned_metric.py::test_losses_match_their_definitions",
    "W3": "methods/test_learned_metric.py::test_gradients_match_finite_differences",
    "G1": "objectives/test_autograd.py::test_autograd_matches_the_closed_form",
    "G2": "objectives/test_autograd.py::test_autograd_matches_the_closed_form",
    "V1": "objectives/test_more_divergences.py::test_renyi_is_a_function_of_alpha",
    **{
        f"V{number}": "objectives/test_more_divergences.py::test_loss_is_the_plain_formula_and_forces_its_gradient"
        for number in range(2, 8)
    },
    "D3": "objectives/test_pair_objective.py::test_loss_is_the_stated_sum_and_gradient_its_derivative",
    "D4": "objectives/test_pair_objective.py::test_loss_is_the_stated_sum_and_gradient_its_derivative",
    "D5": "objectives/test_pair_objective.py::test_contrastive_loss_becomes_t_sne_with_many_negatives",
    "E1": "spaces/test_embeddability.py::test_euclidean_data_have_no_bound_in_their_dimension",
    "E2": "spaces/test_embeddability.py::test_identity_e2",
    "E3": "spaces/test_embeddability.py::test_bound_in_any_dimension_is_the_minimum",
    "E4": "spaces/test_embeddability.py::test_bound_in_any_dimension_is_the_minimum",
    "E5": "spaces/test_embeddability.py::test_no_map_beats_the_bounds",
    "E6": "spaces/test_embeddability.py::test_gap_e6_is_below_every_map_and_exact_in_all_dimensions",
    "E7": "spaces/test_embeddability.py::test_no_map_beats_the_bounds",
    "E8": "spaces/test_embeddability.py::test_closed_forms_of_distortion",
    "E9": "spaces/test_embeddability.py::test_no_map_beats_the_bounds",
    "E10": "spaces/test_embeddability.py::test_closed_forms_of_distortion",
    "E11": "spaces/test_comparisons.py::test_gromov_wasserstein_lies_above_its_lower_bounds",
}


# Classical methods


def centred_gram():
    return C @ X @ X.T @ C


def loss_of(B, error=0.0):
    """Return the loss of PCA for the Gram matrix B."""
    diagonal = np.diag(B)
    return GramLoss(Inner(diagonal[:, None] + diagonal - 2 * B), error)


def gradient_of(loss, at):
    balance = loss.balance(at, None, loss=True)
    return -(balance.attraction + balance.repulsion)


@equation("B1")
def gram_matrices():
    B = centred_gram()
    L = B - C @ Y @ Y.T @ C
    for problem in (eq.PCA().problem(X), eq.ClassicalMDS(metric="precomputed").problem(cdist(X, X))):
        close(problem.loss(Y), np.square(L).sum())
        close(problem.gradient(Y), -4 * L @ C @ Y)
        close(problem.gradient(Y), 4 * springs(L))


@equation("B2")
def step_length():
    rng = np.random.default_rng(1)
    for _ in range(50):
        A = rng.standard_normal((N, N))
        B = C @ (A + A.T) @ C
        loss = loss_of(B)
        at = C @ rng.standard_normal((N, 2)) * rng.uniform(0.01, 2.0)
        beta, sigma = np.linalg.norm(B, 2), np.linalg.norm(at, 2)
        c = 4 * (3 * sigma**2 + max(0.0, -np.linalg.eigvalsh(B)[0]))
        V, h = C @ rng.standard_normal((N, 2)), 1e-4
        along = (gradient_of(loss, at + h * V) - gradient_of(loss, at - h * V)) / (2 * h)
        assert (along * V).sum() <= c * (V * V).sum() * (1 + 1e-6)
        assert loss.balance(at, None, loss=False).stiffness * 4 / N >= c * (1 - 1e-9)
        small = at * min(1.0, np.sqrt(beta) / sigma)
        after = small - gradient_of(loss, small) / (4 * 3 * beta)
        assert np.linalg.norm(after, 2) <= np.sqrt(beta) * (1 + 1e-9)


@equation("B3", "B4")
def landmarks():
    d2, chosen = cdist(X, X, "sqeuclidean"), np.array([0, 7, 14])
    m = len(chosen)
    found = FromDistances(lambda i: d2[i], chosen)
    s = d2[:, chosen].mean(axis=1) - d2[np.ix_(chosen, chosen)].sum() / (2 * m**2)
    close(s, np.square(X - X[chosen].mean(axis=0)).sum(axis=1))
    K = -0.5 * (d2[:, chosen] - s[:, None] - s[chosen])
    W = K[chosen]
    low = K @ np.linalg.pinv(W, rcond=1e-10) @ K.T
    close(found.F @ found.F.T, low)
    G = (X - X[chosen].mean(axis=0)) @ (X - X[chosen].mean(axis=0)).T
    for ridge in (None, 0.7):
        size = np.trace(G - low) / m if ridge is None else ridge
        scores = np.diag(G - K @ np.linalg.inv(W + size * np.eye(m)) @ K.T) / size
        close(ridge_leverage(found, ridge), np.clip(scores, 0, 1))


@equation("B5")
def certificate():
    B = centred_gram()
    values, U = np.linalg.eigh(B)
    low = (U[:, -1:] * values[-1:]) @ U[:, -1:].T
    R = B - low
    exact, approximate = loss_of(B), loss_of(low, float(np.linalg.norm(R)))
    for scale in (0.1, 1.0, 3.0):
        a, b = gradient_of(exact, scale * Y), gradient_of(approximate, scale * Y)
        close(a - b, -4 * C @ R @ C @ (scale * Y))
        size = np.linalg.norm(b)
        bound = size * (size - 4 * np.linalg.norm(R) * np.linalg.norm(C @ (scale * Y), 2))
        close(approximate.certificate(scale * Y), bound)
        assert (a * b).sum() >= bound


@equation("B6")
def trace_quotients():
    for problem in (eq.LLE(n_neighbors=6).problem(X), eq.LaplacianEigenmaps(n_neighbors=6).problem(X)):
        W = to_dense(problem.affinities)
        is_lle = problem.affinities.data.min() < 0
        degree = np.ones(N) if is_lle else W.sum(axis=1)
        root = np.sqrt(degree)
        A = W if is_lle else np.eye(N) - W / np.outer(root, root)
        U = root[:, None] * Y
        U -= np.outer(root, root @ U) / (root @ root)
        S = np.linalg.inv(U.T @ U)
        close(problem.objective.loss(U), np.trace(S @ U.T @ A @ U))
        balance = problem.objective.balance(U, problem.engine, loss=True)
        close(-(balance.attraction + balance.repulsion), 2 * (A @ U - U @ S @ U.T @ A @ U) @ S)


@equation("D1")
def double_kernel_lle():
    problem = build(eq.DKLLE(n_neighbors=6))
    W = to_dense(problem.objective.weights)
    M = -W - W.T + W.T @ W + np.eye(N)
    close(to_dense(problem.affinities), M)
    K, slope = 1 / (1 + D2), -1 / (1 + D2) ** 2
    close(problem.loss(Y), np.trace(M @ K) + K.sum() / N)
    close(problem.gradient(Y), 4 * springs((M + 1 / N) * slope))
    other = 4 * springs((M + 2 * K / N) * slope)  # of Tr(M K) + Tr((I − K)²)/n, appendix D.2
    appendix = differences(lambda at: _appendix_loss(M, at), Y)
    assert_allclose(other, appendix, atol=1e-6 * np.abs(appendix).max())
    assert np.linalg.norm(other - problem.gradient(Y)) > 0.02 * np.linalg.norm(other)


def _appendix_loss(M, at):
    K = 1 / (1 + cdist(at, at, "sqeuclidean"))
    return np.trace(M @ K) + np.trace((np.eye(N) - K) @ (np.eye(N) - K)) / N


@equation("D2")
def double_kernel_pca():
    problem = build(eq.DKPCA(n_neighbors=6))
    K_X, K = to_dense(problem.affinities) + np.eye(N), 1 / (1 + D2)
    A = C @ (K_X - K) @ C
    close(problem.loss(Y), np.square(A).sum())
    close(problem.gradient(Y), 8 * springs(A / (1 + D2) ** 2))


@equation("D6")
def t_sne_as_a_double_kernel_loss():
    problem, P, k, slope, Z, _ = joint(eq.TSNE())
    M = -over(P, k)
    np.fill_diagonal(M, -M.sum(axis=1))
    assert np.linalg.eigvalsh(M)[0] > -1e-12
    close(problem.gradient(Y), 4 * springs((M + 1 / Z) * slope))
    exact = eq.ClassicalMDS(metric="precomputed").fit_transform(np.sqrt(D2))  # 1/k − 1 = d²: a map of loss 0
    close(cdist(exact, exact, "sqeuclidean"), D2)


# Measures


def ranks(A):
    """Return the rank of j among the other points by distance from i, 1 for the nearest; the point itself gets 0."""
    return np.argsort(np.argsort(cdist(A, A), axis=1), axis=1)


@equation("19", "20")
def neighbourhoods():
    k, a, b = 5, ranks(X), ranks(Y)
    w = k * (2 * N - 3 * k - 1) / 2
    false, missing = (b <= k) & OFF, (a <= k) & OFF
    close(trustworthiness(X, Y, k), 1 - (np.maximum(a - k, 0) * false).sum(axis=1).mean() / w)
    close(continuity(X, Y, k), 1 - (np.maximum(b - k, 0) * missing).sum(axis=1).mean() / w)
    near_X, near_Y = np.argsort(a, axis=1), np.argsort(b, axis=1)
    same = (near_X == near_Y).mean(axis=0)  # column 0 is the point itself
    if same[1] > 0:
        close(preservation_ratio(X, Y, 2, 6), same[2:7].sum() / ((6 - 2) * same[1]))


@equation("21")
def distances():
    i = np.triu_indices(N, 1)
    a, b = cdist(X, X)[i], cdist(Y, Y)[i]
    found = stress(X, Y)
    close(float(found.raw), np.square(b - a).sum())
    close(float(found.normalised), np.sqrt(np.square(b - a).sum() / np.square(a).sum()))
    scale = (a * b).sum() / np.square(b).sum()
    best = np.sqrt(np.square(scale * b - a).sum() / np.square(a).sum())
    close(best, np.sqrt(1 - (a * b).sum() ** 2 / (np.square(a).sum() * np.square(b).sum())))
    close(float(found.scale_free), best)
    close(found.scale, scale)
    assert -1 <= float(shepard(X, Y).correlation) <= 1


# The tests


@pytest.mark.parametrize("tag", EQUATIONS)
def test_equation_agrees_with_the_code(tag):
    EQUATIONS[tag]()


def test_every_numbered_equation_is_checked():
    tags = re.findall(r"\\tag\{([^}]+)\}", PAGE.read_text(encoding="utf-8"))
    assert len(tags) == len(set(tags)), "an equation number is used twice"
    unchecked = set(tags) - EQUATIONS.keys() - ELSEWHERE.keys()
    assert not unchecked, f"add a check of {sorted(unchecked)} to EQUATIONS, or name its test in ELSEWHERE"
    assert not (EQUATIONS.keys() | ELSEWHERE.keys()) - set(tags), "a check has no equation"


@pytest.mark.parametrize("name", sorted(set(ELSEWHERE.values())))
def test_tests_of_other_equations_exist(name):
    file, _, function = name.partition("::")
    assert f"def {function}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_equations_cited_in_the_code_exist():
    """Comments cite equations as “docs/math.md, eq. (D1)”."""
    tags = set(re.findall(r"\\tag\{([^}]+)\}", PAGE.read_text(encoding="utf-8")))
    for file in (ROOT / "src" / "equipoise").rglob("*.py"):
        for cited in re.findall(r"math\.md, eq\. \(([^)]+)\)", file.read_text(encoding="utf-8")):
            assert cited in tags, f"{file.name} cites eq. ({cited})"

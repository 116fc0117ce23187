"""The problem of every public method: gradients match finite differences, and forces sum to minus the gradient."""

from __future__ import annotations

import numpy as np
import pytest
from support.methods import X, over

import equipoise as eq
from equipoise.methods import ALL
from equipoise.problems import ForceProblem, Problem

SMALL = X[:24]


def problem_of(Method):
    known = Method().get_params()
    settings = {"random_state": 0, "perplexity": 5, "n_neighbors": 5, "n_jobs": 1}
    if issubclass(Method, eq.Embedding):
        settings["engine"] = "reference"
    return Method(**{name: value for name, value in settings.items() if name in known}).problem(SMALL)


def test_problem_without_a_loss_cannot_be_built():
    class Incomplete(Problem):
        """A problem without any of the required methods."""

    with pytest.raises(TypeError, match=r"abstract class Incomplete .*_loss_at"):
        Incomplete()


@over(ALL)
def test_gradient_matches_finite_differences(Method):
    problem = problem_of(Method)
    assert isinstance(problem, Problem) and isinstance(problem, ForceProblem | eq.StressProblem)
    rng = np.random.default_rng(0)
    Y = max(1.0, np.std(problem.Y0)) * rng.standard_normal(problem.Y0.shape)
    gradient, direction = problem.gradient(Y), rng.standard_normal(Y.shape)
    h = 1e-5 * np.std(Y)
    slope = (problem.loss(Y + h * direction) - problem.loss(Y - h * direction)) / (2 * h)
    scale = np.linalg.norm(gradient) * np.linalg.norm(direction)
    assert abs(slope - (gradient * direction).sum()) < 1e-5 * scale


@over(ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forces_sum_to_minus_the_gradient(Method, dtype):
    problem = problem_of(Method)
    Y = problem.Y0.astype(dtype)
    attraction, repulsion, gradient = problem.attraction(Y), problem.repulsion(Y), problem.gradient(Y)
    assert attraction.dtype == repulsion.dtype == gradient.dtype == dtype
    scale = np.abs(attraction).max() + np.abs(repulsion).max()
    assert np.abs(attraction + repulsion + gradient).max() <= (1e-5 if dtype == np.float32 else 1e-12) * scale


@over(ALL)
def test_invalid_maps_raise(Method):
    problem = problem_of(Method)
    for ask in (problem.loss, problem.gradient, problem.attraction, problem.repulsion):
        with pytest.raises(ValueError, match=r"expected \(n_samples, n_components\)"):
            ask(problem.Y0[:5])
    with pytest.raises(ValueError, match="Y contains NaN at row 0, column 0"):
        problem.loss(np.full(problem.Y0.shape, np.nan))
    with pytest.raises(ValueError, match=r"n_iter must be an integer, got 2\.5"):
        problem.optimize(n_iter=2.5)


@over(ALL)
def test_new_problem_is_at_its_initial_map(Method):
    problem = problem_of(Method)
    assert problem.n_iter == 0 and problem.stopped == "n_iter" and problem.loss_curve.shape == (0, 2)
    assert problem.Y.shape == problem.Y0.shape and np.isfinite(problem.loss(problem.Y))

"""The optimisers of the studio: the code of a run, its link, its energies and their plot."""

import numpy as np
import pytest

from equipoise import data
from equipoise.studio.page.link import LinkedRun, View, from_query, to_query
from equipoise.studio.session.parameters import OPTIMIZERS
from equipoise.studio.session.python_source import python_source
from equipoise.studio.session.recipe import Recipe
from equipoise.studio.session.run import Run

N = 120
DIGITS = "X = data.load('digits').X"


@pytest.fixture
def X():
    return data.load("digits").X[:N]


def run_source(source):
    namespace = {}
    exec(source.replace(".X\n", f".X[:{N}]\n"), namespace)
    return namespace["Y"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_run_with_another_optimizer_matches_the_estimator(X, optimizer):
    run = Run(X, Recipe("tsne", (("early_exaggeration", 1.0),), seed=3, optimizer=optimizer), n_jobs=1)
    for _ in range(209):
        run.step()
    frame = run.step()
    assert np.array_equal(run_source(python_source(run, DIGITS, 210)), frame.Y)
    assert from_query(to_query(View(runs=(LinkedRun(run.recipe, 210),)))).runs[0].recipe == run.recipe
    if optimizer == "momentum":
        assert run.energy == []
        return
    iteration, kinetic, potential = np.array(run.energy).T
    fitted = run.problem.energy_curve
    assert fitted[:, 0].tolist() == list(range(0, 210, 10))  # at the reports of the estimator
    assert np.allclose(np.column_stack([kinetic, potential])[::10][:21], fitted[:, 1:3], rtol=1e-5, atol=1e-8)
    assert iteration.tolist() == list(range(211)) and kinetic[0] == 0 and kinetic.max() > 0.1
    total = kinetic + potential
    assert (np.ptp(total) < 0.05 * total[0]) == (optimizer == "frictionless")
    run.change("dof", 2.0)
    run.step(5)
    assert np.array_equal(run_source(python_source(run, DIGITS, 215)), run.frame.Y)
    run.rewind(100)
    assert len(run.energy) == 101 and run.recipe.optimizer == optimizer


def test_energies_are_plotted_only_for_points_with_mass():
    pytest.importorskip("bokeh")
    from equipoise.studio.page.energy_plot import MAX_POINTS, EnergyPlot

    plot = EnergyPlot()
    assert not plot.plot.visible
    plot.show([(i, 0.5 * i, 3.0) for i in range(5000)], "first map")
    shown = plot.source.data
    assert plot.plot.visible and plot.plot.title.text == "Energy, first map" and len(shown["total"]) == MAX_POINTS
    assert shown["iteration"][-1] == 4999 and shown["total"][-1] == shown["kinetic"][-1] + 3.0
    plot.show([])
    assert not plot.plot.visible

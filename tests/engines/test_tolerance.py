"""The tolerance of the mesh on maps that t-SNE has not unfolded yet: both engines keep it, and notice a coarse mesh."""

import warnings

import numpy as np
import pytest
from support.cases import clump, norm_error

import equipoise as eq
from equipoise.engines import Exact, make_engine
from equipoise.kernels import StudentT
from equipoise.optimize import Momentum

TOL, N = 0.01, 3000
BOTH = pytest.mark.parametrize("name", ["grid", "torch"])


def mesh_engine(name):
    if name == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    return make_engine(name, 2, TOL)


@pytest.fixture(scope="module")
def maps():
    """Return maps of a mixture of 30 clusters, from the clump at the start of t-SNE to separate clusters."""
    rng, found = np.random.RandomState(0), []
    X = 2 * rng.standard_normal((30, 50))[rng.randint(30, size=N)] + rng.standard_normal((N, 50))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", eq.UnfinishedWarning)
        keep = lambda iteration, loss, Y: found.append(np.array(Y, np.float32))  # noqa: E731
        eq.TSNE(n_iter=60, engine="grid", optimizer=Momentum(every=6), callbacks=[keep]).fit(X)
    return found


@BOTH
def test_tolerance_is_kept_while_clusters_form(maps, name):
    assert len(maps) >= 10 and maps[0].std() < 1e-3 and maps[-1].std() > 3
    for Y in maps[:: 1 if name == "grid" else 3]:  # a new mesh costs more in PyTorch
        truth = Exact(2).field(Y.astype(np.float64), StudentT()).gradient
        assert norm_error(mesh_engine(name).field(Y, StudentT()).gradient, truth) <= TOL


@pytest.fixture(scope="module")
def outliers():
    """Return a clump with outliers, and the forces: 0.8 % of the points bear more than 99 % of their sum of squares."""
    Y = clump(np.random.default_rng(0), 20_000, 2e-4, 5.0)
    return Y, Exact(2).field(Y.astype(np.float64), StudentT()).gradient


@BOTH
def test_tolerance_is_kept_for_all_points_if_few_bear_the_force(outliers, name):
    Y, truth = outliers
    # 0.016 if the force of all points was estimated from the sample, which contains too many outliers
    assert norm_error(mesh_engine(name).field(Y, StudentT()).gradient, truth) <= TOL


@BOTH
def test_mesh_that_is_too_coarse_is_noticed(outliers, name, monkeypatch):
    Y, truth = outliers
    monkeypatch.setattr("equipoise.engines.mesh.mesh_engine.LOWEST", 0)  # the first mesh cannot be refined
    with pytest.warns(UserWarning, match=r"on the mesh has a relative error of .*, more than tol=0\.01"):
        found = mesh_engine(name).field(Y, StudentT()).gradient
    assert norm_error(found, truth) > TOL

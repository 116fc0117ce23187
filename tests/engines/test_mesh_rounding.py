"""Rounding errors of the mesh: many points in one cell, and forces much smaller than the potential."""

import warnings

import numpy as np
import pytest
from support.cases import clump, relative_error

from equipoise import _core
from equipoise.engines import Grid
from equipoise.engines.mesh.plan import PADDING
from equipoise.kernels import StudentT

MANY = 300_000


def spread(Y, size, dtype, charges, n_threads=2):
    mesh = _core.Mesh(np.zeros(2), 1.0, np.array([size, size], np.int64))
    grid = np.empty(charges.shape[1] * size**2 + PADDING, dtype)
    grid[-PADDING:] = 0
    _core.spread(mesh, Y.astype(dtype), charges, grid, n_threads)
    return grid[:-PADDING]


@pytest.mark.parametrize("size", [40, 200], ids=["small mesh", "strips"])
@pytest.mark.parametrize("m", [1, 2])
def test_float32_mesh_adds_up_many_points_in_one_cell(rng, size, m):
    Y = 20.3 + 1e-3 * rng.standard_normal((MANY, 2))
    charges = np.column_stack([np.ones(MANY), rng.uniform(0.5, 1, MANY)])[:, :m].copy()
    exact = spread(Y.astype(np.float32), size, np.float64, charges)
    found = spread(Y.astype(np.float32), size, np.float32, charges)
    assert relative_error(found, exact) < 3e-6  # 1e-4 to 4e-3 if all points were added to the mesh one by one
    assert found.tobytes() == spread(Y.astype(np.float32), size, np.float32, charges, n_threads=1).tobytes()


def test_float32_mesh_adds_up_millions_of_points_in_steps(rng):
    Y = np.tile((20.3 + 1e-3 * rng.standard_normal((MANY, 2))).astype(np.float32), (16, 1))
    charges = np.ones((len(Y), 1))
    exact = 16 * spread(Y[:MANY], 200, np.float64, charges[:MANY])
    # 2.3e-6; 9.6e-6 where any number of chunks of points was added up one after the other
    assert relative_error(spread(Y, 200, np.float32, charges), exact) < 4e-6


def test_strips_of_a_mesh_are_added_up_everywhere(rng):
    Y = rng.uniform(3, 196, (MANY, 2)).astype(np.float32)  # every strip has several chunks of points
    charges = np.ones((MANY, 1))
    assert relative_error(spread(Y, 200, np.float32, charges), spread(Y, 200, np.float64, charges)) < 3e-6


@pytest.mark.parametrize(("tol", "double"), [(1e-2, False), (1e-4, True)])
@pytest.mark.parametrize("reach", [1.2, 9.0])
def test_tolerance_is_kept_for_a_clump_of_many_points(rng, tol, double, reach):
    Y, kernel, engine = clump(rng, MANY, 2e-4, reach), StudentT(), Grid(2, tol)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = engine.field(Y, kernel).gradient
    some = rng.permutation(MANY)[:300]
    truth = engine._direct(kernel, engine._source(Y.astype(np.float64), None))(Y[some].astype(np.float64))[1][:, 0]
    assert relative_error(found[some], truth) <= tol
    assert engine.state()[0]["double"] is double


def test_float64_is_given_up_once_float32_is_precise_enough(rng):
    kernel, engine = StudentT(), Grid(2, 1e-4)
    wide = 10 * rng.standard_normal((MANY, 2)).astype(np.float32)
    for Y, double in ((clump(rng, MANY, 2e-4, 9.0), True), (wide, False)):
        engine.field(Y, kernel)
        assert engine.state()[0]["double"] is double

"""The tables from which engines read user-defined kernels, and how long they are kept."""

import pickle

import numpy as np
from numpy.testing import assert_array_equal
from scipy import sparse
from support.cases import UserKernel, relative_error

from equipoise.engines import Exact, Reference, make_engine
from equipoise.kernels import Kernel


def test_exact_evaluates_the_formula_of_a_user_kernel_once(rng):
    """In float32 the sums over pairs read a table, whose size does not depend on the number of points."""
    evaluated = []

    class Recorded(UserKernel):
        def value(self, d2):
            evaluated.append(np.size(d2))
            return super().value(d2)

    kernel, Y, A = Recorded(), rng.standard_normal((50, 2)).astype(np.float32), rng.random((50, 50))
    for engine in (Exact(1), make_engine("grid", 1, 1e-3)):  # the grid engine passes dense weights on
        evaluated.clear()
        engine.edges(Y, A, kernel, -1.0, potential=True)
        assert evaluated
        first = len(evaluated)
        engine.edges(2 * Y, A, kernel, -1.0, potential=True)
        assert len(evaluated) == first
    engine = Exact(1)
    engine.field(Y, kernel)
    first = len(evaluated)
    engine.field(2 * Y, kernel)
    assert len(evaluated) == first


class Widening(Kernel):
    """A user-defined kernel whose length can be changed, with the default hash."""

    def __init__(self, length):
        self.length = length

    def value(self, d2):
        return (1 + d2 / self.length**2) ** -1.5

    def slope(self, d2):
        return -1.5 * (1 + d2 / self.length**2) ** -2.5 / self.length**2


def test_a_new_engine_uses_the_changed_parameters_of_a_kernel(rng):
    kernel, Y, A = (
        Widening(1.0),
        1.5 * rng.standard_normal((80, 2)).astype(np.float32),
        sparse.random(80, 80, 0.1, format="csr", random_state=0),
    )
    for kernel.length in (1.0, 9.0):
        engine, expected = Exact(1), Reference().field(Y, kernel)
        for _ in range(2):  # the second result is computed from the tables of the first
            assert relative_error(engine.field(Y, kernel).gradient, expected.gradient) < 1e-5
            force = engine.edges(Y, A, kernel, -0.5, potential=False)[1]
            assert relative_error(force, Reference().edges(Y, A, kernel, -0.5, potential=False)[1]) < 1e-5


def test_exact_is_pickled_without_its_tables(rng):
    engine, Y, kernel = Exact(3), rng.standard_normal((20, 2)).astype(np.float32), UserKernel()
    expected, size = engine.field(Y, kernel), len(pickle.dumps(Exact(3)))
    assert len(pickle.dumps(engine)) == size
    copy = pickle.loads(pickle.dumps(engine))
    assert copy.n_threads == 3
    assert_array_equal(copy.field(Y, kernel).gradient, expected.gradient)


def test_a_new_mesh_uses_the_changed_parameters_of_a_kernel(rng):
    kernel, Y = Widening(1.0), 3 * rng.standard_normal((400, 2)).astype(np.float32)
    for kernel.length in (1.0, 3.0, 0.45):
        force = make_engine("grid", 1, 1e-3).field(Y, kernel).gradient
        assert relative_error(force, Reference().field(Y, kernel).gradient) < 1e-3

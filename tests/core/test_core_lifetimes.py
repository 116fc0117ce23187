"""Objects of the compiled core keep their arrays alive; constants match those in Python."""

import gc
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from equipoise import _core
from equipoise.engines.tables import tabulate
from equipoise.evaluate import order
from equipoise.kernels import StudentT


def overwrite_freed_memory():
    gc.collect()
    return [np.full(size, 255, np.uint8) for size in (64, 512, 4096, 65536) for _ in range(64)]


def edges(kernel, A, values, Y):
    force = np.empty(Y.shape)
    _core.edges_sparse(kernel, -1.0, A, values, Y, np.empty(0), force, 1)
    return force


def ring(n):
    """Return the index arrays of a ring of n points."""
    return np.arange(n + 1, dtype=np.int64), ((np.arange(n) + 1) % n).astype(np.int32)


def test_csr_keeps_its_arrays_alive(rng):
    indptr, indices = ring(300)
    seen = weakref.ref(indptr), weakref.ref(indices)
    A, Y, values = _core.Csr(indptr, indices, 300), rng.standard_normal((300, 2)), np.ones(300)
    before = edges(_core.Kernel.gaussian(), A, values, Y)
    del indptr, indices
    junk = overwrite_freed_memory()
    assert all(ref() is not None for ref in seen) and junk
    assert_array_equal(edges(_core.Kernel.gaussian(), A, values, Y), before)
    del A
    gc.collect()
    assert all(ref() is None for ref in seen)


def test_tabulated_kernel_keeps_its_table_alive(rng):
    kernel = StudentT()
    segments, first, scale = tabulate(kernel.log_value, kernel.log_slope, 1e-3, 1e3, kernel.kink)
    seen, native = weakref.ref(segments), _core.Kernel.tabulated(segments, first, scale)
    A, Y, values = (
        _core.Csr(*ring(300), 300),
        rng.standard_normal((300, 2)).astype(np.float32),
        np.ones(300, np.float32),
    )
    before = edges(native, A, values, Y)
    del segments
    junk = overwrite_freed_memory()
    assert seen() is not None and junk
    assert_array_equal(edges(native, A, values, Y), before)
    del native
    gc.collect()
    assert seen() is None


def test_empty_table_raises():
    with pytest.raises(ValueError, match="segments must have at least one row"):
        _core.Kernel.tabulated(np.zeros((0, 4), np.float32), 0, 1.0)


def test_python_constants_match_the_core():
    assert order.TILE == _core.RANK_TILE


def test_gpu_constants_match_the_core():
    pytest.importorskip("torch")
    from equipoise.engines.torch import particle_mesh

    assert particle_mesh.ORDER == _core.MESH_ORDER
    assert 2.0**_core.FIXED_POINT_BITS == particle_mesh.FINEST


def test_near_field_copies_its_points_and_keeps_its_table_alive(rng):
    segments, first, scale = tabulate(StudentT().value, StudentT().slope, 1e-3, 1.0, 0.0)
    Y, targets, cells = rng.uniform(0, 3, (50, 2)), rng.uniform(0, 3, (4, 2)), (np.zeros(2), 1.0, np.array([3, 3]))
    seen, field = (
        weakref.ref(segments),
        _core.NearField64(_core.Mesh(*cells), segments, first, scale, Y, np.ones((50, 1)), 1),
    )

    def potential():
        sums = np.zeros((4, 1))
        _core.near_at(field, targets, sums, np.zeros((4, 1, 2)), 1)
        return sums

    before = potential()
    Y[:] = 100.0
    del segments
    junk = overwrite_freed_memory()
    assert seen() is not None and junk and before.any()
    assert_array_equal(potential(), before)

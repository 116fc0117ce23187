import numpy as np
import pytest
from scipy import fft

from equipoise import _core
from equipoise.engines.mesh.plan import group_frequencies


def mesh_of(size):
    return _core.Mesh(np.zeros(len(size)), 1.0, np.array(size, dtype=np.int64))


def frequencies(k, size, dtype):
    """Return the frequencies of a kernel with values k at lags 0 … n per axis, in the core's layout."""
    return group_frequencies(fft.dctn(k, type=1) / np.prod([2 * n for n in size]) / 2, size, dtype)


# Every prime factor, odd and even lengths, a single row, and more rows than two SIMD vectors.
@pytest.mark.parametrize("size", [(1,), (8,), (25,), (1, 3), (9, 15), (16, 12), (45, 50), (4, 5, 6), (27, 25, 32)])
@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_convolve_matches_the_padded_transform(rng, size, dtype, close):
    k = rng.standard_normal([n + 1 for n in size])
    grid = rng.standard_normal((2, int(np.prod(size)))).astype(dtype)
    lags = [np.minimum(np.arange(2 * n), 2 * n - np.arange(2 * n)) for n in size]
    axes, padded = tuple(range(1, len(size) + 1)), [2 * n for n in size]
    spectrum = fft.rfftn(grid.reshape(2, *size).astype(np.float64), s=padded, axes=axes) * fft.rfftn(k[np.ix_(*lags)])
    truth = fft.irfftn(spectrum, s=padded, axes=axes)[(slice(None), *(slice(n) for n in size))].reshape(2, -1)
    one, three = grid.copy(), grid.copy()
    _core.convolve(mesh_of(size), frequencies(k, size, dtype), one, 1)
    _core.convolve(mesh_of(size), frequencies(k, size, dtype), three, 3)
    assert np.linalg.norm(one - truth) <= close * np.linalg.norm(truth)
    assert one.tobytes() == three.tobytes()


def test_convolve_checks_array_shapes():
    good, grid = frequencies(np.ones((7, 7)), (6, 6), np.float64), np.ones((1, 36))
    with pytest.raises(ValueError, match="no prime factor above 5"):
        _core.convolve(mesh_of((6, 7)), good, grid, 1)
    with pytest.raises(ValueError, match="frequencies must have shape"):
        _core.convolve(mesh_of((6, 6)), good[:-1].copy(), grid, 1)
    with pytest.raises(ValueError, match="grid must have shape"):
        _core.convolve(mesh_of((6, 6)), good, np.ones((1, 35)), 1)

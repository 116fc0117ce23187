"""The largest magnitude of an array, read on one thread or on several."""

import numpy as np
import pytest

from equipoise.arrays import csr
from equipoise.arrays.csr import largest_magnitude, on_threads


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("large", [1, 10**9])
def test_largest_magnitude_is_that_of_numpy(n_threads, large, monkeypatch):
    monkeypatch.setattr(csr, "LARGE", large)
    X = np.random.default_rng(0).standard_normal((50, 7))  # fewer rows than parts
    with on_threads(n_threads):
        for array in (X, -X, np.zeros((3, 2)), np.empty((0, 4))):
            assert largest_magnitude(array) == np.abs(array).max(initial=0.0)
        X[31, 2] = np.nan
        assert np.isnan(largest_magnitude(X))

"""A stand-in for CuPy on machines without a GPU: arrays that can be read only by DLPack, `get` and indexing."""

import sys
from types import ModuleType

import numpy as np
import pytest


class ndarray:
    """An array that refuses implicit conversion to NumPy."""

    __module__ = "cupy"

    def __init__(self, values):
        self._values = np.array(values)
        self.shape, self.dtype, self.ndim = self._values.shape, self._values.dtype, self._values.ndim

    def get(self):
        return self._values.copy()

    def __dlpack__(self, **settings):
        return self._values.__dlpack__()

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()

    def __len__(self):
        return len(self._values)

    def __getitem__(self, key):
        return ndarray(self._values[key])

    def __array__(self, *args, **settings):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")


@pytest.fixture
def cupy(monkeypatch):
    """Install the stand-in as the module `cupy`, and return it."""
    module = ModuleType("cupy")
    module.ndarray, module.asarray = ndarray, ndarray
    module.from_dlpack = lambda x: ndarray(np.from_dlpack(x))
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module

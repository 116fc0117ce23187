"""An engine for arrays of any library, to test objectives written against the array namespace."""

from __future__ import annotations

import numpy as np

from equipoise.arrays.csr import is_sparse
from equipoise.arrays.namespace import array_like, to_numpy
from equipoise.engines import HOST, Field, Reference
from equipoise.engines.cpu import HostPlacement


class LibraryPlacement(HostPlacement):
    """Converts NumPy arrays to a library; sparse matrices remain in SciPy."""

    def __init__(self, library):
        self.library = library

    def to_device(self, array, dtype=None):
        return array if is_sparse(array) else self.library(HOST.to_device(array, dtype))


class LibraryEngine(Reference):
    """The reference engine for the arrays of a library: it accepts only these, and returns results of the same type."""

    def __init__(self, library):
        self.placement = LibraryPlacement(library)
        self._kind = type(library(np.zeros(1)))

    def _numpy(self, x):
        assert x is None or is_sparse(x) or type(x) is self._kind, type(x)
        return x if x is None or is_sparse(x) else to_numpy(x)

    def edges(self, Y, A, kernel, b, *, potential):
        psi, force = super().edges(self._numpy(Y), self._numpy(A), kernel, b, potential=potential)
        return psi, array_like(Y, force)

    def field(self, Y, kernel, charges=None):
        return Field(*(array_like(Y, part) for part in super().field(self._numpy(Y), kernel, self._numpy(charges))))

    def freeze(self, Y, kernel, charges=None):
        frozen = super().freeze(self._numpy(Y), kernel, self._numpy(charges))
        return lambda targets: Field(*(array_like(targets, part) for part in frozen(self._numpy(targets))))

    def edges_to(self, targets, Y, A, kernel, b):
        return array_like(targets, super().edges_to(self._numpy(targets), self._numpy(Y), A, kernel, b))

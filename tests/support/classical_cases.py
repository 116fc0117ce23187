"""Data and helpers for the tests of the classical methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes
from sklearn.datasets import load_digits, make_s_curve

import equipoise as eq
from equipoise.methods import CLASSICAL

every_method = pytest.mark.parametrize("Method", CLASSICAL, ids=lambda M: M.__name__)
SCALING = [eq.PCA, eq.ClassicalMDS, eq.Isomap]
LOCAL = [eq.LLE, eq.LaplacianEigenmaps]

X = make_s_curve(160, noise=0.05, random_state=0)[0]
X.flags.writeable = False


def r2(A, B):
    """Return Procrustes' R²: 1 for maps that are equal up to translation, rotation, reflection and scale."""
    return 1 - procrustes(A, B)[2]


def tie_free_digits(n=None):
    """Return digits with jitter that breaks the many ties between distances of integer pixels."""
    A = load_digits().data[:n]
    return A + 0.01 * np.random.RandomState(0).standard_normal(A.shape)


def with_neighbors(Method, k):
    """Return the method with n_neighbors=k if it has that parameter."""
    return Method(n_neighbors=k) if Method in (eq.Isomap, *LOCAL) else Method()

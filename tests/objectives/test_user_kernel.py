"""User-defined kernels are checked before work starts."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.objectives import check_kernel

X = np.random.default_rng(0).normal(size=(40, 4))


def kernel(value=lambda d2: 1 / (1 + d2), slope=lambda d2: -1 / (1 + d2) ** 2, **attributes):
    class User(eq.kernels.Kernel):
        pass

    for name, function in (("value", value), ("slope", slope)):
        if function is not None:
            setattr(User, name, staticmethod(function))
    for name, attribute in attributes.items():
        setattr(User, name, attribute)
    return User()


@pytest.mark.parametrize(
    "valid",
    [
        kernel(),
        kernel(lambda d2: np.exp(-d2), lambda d2: -np.exp(-d2)),  # underflows far away
        kernel(  # slope jumps at 1
            lambda d2: np.maximum(d2, 1.0) ** -1.0,
            lambda d2: np.where(d2 < 1, 0.0, -(np.maximum(d2, 1.0) ** -2.0)),
            kink=1.0,
        ),
        eq.kernels.PowerLaw(2.0, 1.0),
    ],
)
def test_valid_kernels_pass(valid):
    check_kernel(valid)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            kernel(slope=lambda d2: 1 / (1 + d2) ** 2),
            r"User\.slope\(0\.001\) = .* is -0\.998 there; slope\(\) has the wrong sign",
        ),
        (kernel(slope=lambda d2: -2 / (1 + d2) ** 2), r"is -0\.998 there; divide slope\(\) by 2$"),
        (kernel(slope=lambda d2: -2 * np.sqrt(d2) / (1 + d2) ** 2), r"with respect to d2, not the distance"),
        (kernel(slope=lambda d2: -np.exp(-d2)), r"but the derivative of value\(\) with respect to d2 is"),
        (kernel(np.cos, lambda d2: -np.sin(d2)), r"User\.value\(.*\) = -.*, but a kernel must be positive"),
        (kernel(lambda d2: 1 + d2, np.ones_like), r"User\.value must not increase with the squared distance, but"),
        (kernel(lambda d2: 1.0 if d2 < 1 else 0.5), r"User\.value\(d2\) fails for an array .* Write it elementwise"),
        (kernel(lambda d2: 1.0), r"must return an array of numbers with the shape of d2, \(49,\); got float$"),
        (
            kernel(lambda d2: np.full(d2.shape, "a")),
            r"must return an array of numbers .* got shape \(49,\) and dtype <U1",
        ),
        (
            kernel(lambda d2: (1 / (1 + d2)).ravel()),
            r"with the shape of d2, \(7, 7\); got shape \(49,\) and dtype float64",
        ),
        (kernel(lambda d2: np.where(d2 > 1, np.nan, 1.0)), r"User\.value\(.*\) = nan, but it must be finite"),
    ],
)
def test_invalid_kernels_raise_before_work_starts(user, message):
    with pytest.raises(ValueError, match=message):
        eq.SymmetricSNE(kernel=user, n_iter=1).fit(X)
    with pytest.raises(ValueError, match=message):
        eq.forces(eq.SymmetricSNE(kernel=user))


@pytest.mark.parametrize("missing", ["value", "slope"])
def test_missing_formula_raises(missing):
    with pytest.raises(TypeError, match=rf"User must define {missing}\(d2\)"):
        eq.SymmetricSNE(kernel=kernel(**{missing: None}), n_iter=1).fit(X)

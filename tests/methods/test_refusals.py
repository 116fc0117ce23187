"""Every public method rejects invalid data and parameters; the message names the row, column or parameter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from support.cases import changed
from support.methods import FLOWS, NEW, PUBLIC, X, brief, every_method, iterative, over, over_those_with, takes

import equipoise as eq


def refuses(call, message, error=ValueError):
    """Assert that a call raises an error whose message matches a regular expression."""
    with pytest.raises(error, match=message):
        call()


# Tables

BAD = {
    "NaN": (changed(X, 3, 2, np.nan), r"NaN at row 3, column 2\b"),
    "inf": (changed(X, 59, 0, np.inf), r"inf at row 59, column 0\b"),
    "-inf": (changed(X, 0, 4, -np.inf), r"inf at row 0, column 4\b"),
    "several NaN": (changed(X, [5, 7], 1, np.nan), r"NaN at row 5, column 1, and .*1 more"),
    "named column": (pd.DataFrame(changed(X, 3, 2, np.nan), columns=list("abcde")), r"row 3, column 2 \('c'\)"),
    "text": (changed(X.astype(object), 4, 1, "red"), r"'red' at row 4, column 1\b"),
    "complex": (X + 1j, r"[Cc]omplex"),
    "1-D": (X[0], "2D array, got 1D array"),
    "3-D": (X[None], r"dim 3|3D"),
    "one row": (X[:1], "1 sample"),
    "no rows": (X[:0], "0 sample"),
    "no columns": (X[:, :0], "0 feature"),
    "ragged": ([[1.0, 2], [3]], "inhomogeneous|sequence"),
}


@pytest.mark.parametrize("name", BAD)
@every_method
def test_invalid_tables_raise(Method, name):
    data, message = BAD[name]
    refuses(lambda: brief(Method).fit(data), message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (NEW[:, :3], "3 features.*expecting 5"),
        (changed(NEW, 6, 1, np.nan), r"NaN at row 6, column 1\b"),
        (NEW[0], "2D array, got 1D array"),
    ],
    ids=["columns", "NaN", "1-D"],
)
@every_method
def test_transform_of_invalid_rows_raises(Method, data, message):
    method = brief(Method).fit(X)
    refuses(lambda: method.transform(data), message)


@every_method
def test_transform_before_fit_raises(Method):
    refuses(lambda: brief(Method).transform(NEW), f"This {Method.__name__} instance is not fitted yet", NotFittedError)


# Parameters


@pytest.mark.parametrize("value", [0, -2, 2.5, "2"])
@over_those_with("n_components")
def test_invalid_n_components_raises(Method, value):
    refuses(lambda: brief(Method, n_components=value).fit(X), f"n_components must be .*{value!r}")


@over([Method for Method in PUBLIC if takes(Method, "n_components") and Method is not eq.MDS])
def test_too_large_n_components_raises(Method):
    refuses(lambda: brief(Method, n_components=61).fit(X), "n_components=61 is too large|n_components must be .*61")


@pytest.mark.parametrize("value", [0, -2])
@every_method
def test_invalid_n_jobs_raises(Method, value):
    refuses(lambda: brief(Method, n_jobs=value).fit(X), f"n_jobs must be .*{value}")


@pytest.mark.parametrize("value", [-1, 2.5])
@over_those_with("n_iter")
def test_invalid_n_iter_raises(Method, value):
    refuses(lambda: iterative(Method, n_iter=value).fit(X), f"n_iter must .*{value}")


@every_method
def test_invalid_callbacks_raise(Method):
    refuses(lambda: iterative(Method, callbacks=print).fit(X), "callbacks must be a list")


@over_those_with("engine")
def test_unknown_engine_raises(Method):
    refuses(lambda: brief(Method, engine="gpu").fit(X), "engine.* 'gpu'")


@every_method
def test_unknown_device_raises(Method):
    name = {"engine": "torch"} if takes(Method, "engine") else {}
    refuses(lambda: brief(Method, **name, device="tpu").fit(X), "device must be .*'tpu'")


@over_those_with("metric")
def test_unknown_metric_raises(Method):
    refuses(lambda: brief(Method, metric="euclid").fit(X), "unknown metric 'euclid'; did you mean euclidean")


@over_those_with("metric")
def test_invalid_precomputed_distances_raise(Method):
    method = brief(Method, metric="precomputed")
    refuses(lambda: method.fit(X), r"square, got shape \(60, 5\)")
    D = np.abs(X[:, :1] - X[:, 0])
    refuses(lambda: method.fit(changed(D, 1, 3, -1.0)), r"D\[1, 3\] = -1 is negative|not symmetric")
    refuses(lambda: method.fit(changed(D, 2, 2, 1.0)), r"D\[2, 2\] = 1")


@over_those_with("init")
def test_invalid_init_raises(Method):
    d = Method().n_components
    for shape in ((3, d), (60, d + 1), (60,)):
        refuses(lambda shape=shape: brief(Method, init=np.zeros(shape)).fit(X), rf"init .*\(60, {d}\)")
    refuses(lambda: brief(Method, init="centre").fit(X), "unknown init 'centre'; init must be")
    start = changed(np.ones((60, d)), 6, 1, np.nan)
    refuses(lambda: brief(Method, init=start).fit(X), r"init.* contains NaN.* at row 6, column 1\b")


@pytest.mark.parametrize("value", [0, -1, np.nan, "a"])
@over_those_with("tol")
def test_invalid_tol_raises(Method, value):
    if Method is eq.MDS and value == 0:
        assert np.isfinite(brief(Method, tol=0).fit_transform(X)).all()  # runs until n_iter
    else:
        refuses(lambda: iterative(Method, **{"tol": value}).fit(X), "tol must ")


@over_those_with("n_neighbors")
def test_invalid_n_neighbors_raises(Method):
    for value in (0, -3):
        refuses(lambda value=value: brief(Method, n_neighbors=value).fit(X), f"n_neighbors must be .*{value}")


@over([Method for Method in PUBLIC if Method in FLOWS])
def test_unknown_solver_raises(Method):
    refuses(lambda: brief(Method, solver="svd").fit(X), "solver must be .*'svd'")


@every_method
def test_checkpoint_without_random_state_raises(Method, tmp_path):
    method = iterative(Method, random_state=None, callbacks=[eq.Checkpoint(tmp_path / "run.eqc")])
    refuses(lambda: method.fit(X), "random_state")

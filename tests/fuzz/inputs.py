"""Make the X, y and new rows that a case describes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .containers import wrap
from .tables import as_affinities, as_distances, make_table


def make_input(described: dict[str, Any]) -> Any:
    """Return X: a table, distances, affinities or neighbours, in its container."""
    table, role, fault = described["table"], described.get("as", "table"), described.get("fault")
    X = make_table(table)
    if role == "distances":
        X = as_distances(X, table["seed"], fault)
    elif role == "affinities":
        X = as_affinities(X, table["seed"], fault)
    elif role == "neighbors":
        return _neighbors(X, fault)
    return wrap(X, described["container"], table["seed"])


def _neighbors(X: np.ndarray, fault: str | None) -> Any:
    """Return (indices, distances) of nearest neighbours, with a fault."""
    D = as_distances(X, 0, None)
    k = max(0, min(12, len(D) - 1))
    indices = np.argsort(D, axis=1)[:, 1 : k + 1]
    distances = np.take_along_axis(D, indices, axis=1)
    if fault is None or not indices.size:
        return indices, distances
    if fault == "minus one":
        indices[-1, -1] = -1
    elif fault == "out of range":
        indices[0, 0] = len(D) + 7
    elif fault == "twice":
        indices[0] = indices[0, 0]
    elif fault == "float indices":
        indices = indices.astype(float)
    elif fault == "nan":
        distances[0, 0] = np.nan
    elif fault == "negative":
        distances[0, 0] = -1
    elif fault == "shapes":
        distances = distances[:, :-1]
    elif fault == "one column":
        indices, distances = indices[:, :1], distances[:, :1]
    return indices, distances


def make_labels(kind: str, n: int) -> Any:
    """Return y for n points."""
    labels = np.arange(n) % 3
    return {
        "integers": labels,
        "floats": labels / 2,
        "nan": np.where(labels == 0, np.nan, labels),
        "text": labels.astype(str),
        "short": labels[:-1],
        "none": None,
        "unlabelled": labels - 1,
    }[kind]


def make_new(described: dict[str, Any], X: dict[str, Any]) -> Any:
    """Return new rows for a method that was fitted to the input X."""
    fitted = make_table(X["table"])
    if X.get("as") == "distances":
        fitted = as_distances(fitted, X["table"]["seed"], None)
    elif X.get("as") == "affinities":
        fitted = as_affinities(fitted, X["table"]["seed"], None)
    rng = np.random.default_rng(described["seed"])
    m, D = described["rows"], max(0, fitted.shape[1] + described["columns"])
    rows = np.zeros((m, D))
    if len(fitted):
        width = min(D, fitted.shape[1])
        rows[:, :width] = fitted[rng.integers(len(fitted), size=m)][:, :width]
    with np.errstate(all="ignore"):
        scale = np.nan_to_num(np.abs(fitted), posinf=0).max(initial=0.0) or 1.0
        if described["values"] == "near":
            rows = rows + 0.1 * scale * rng.random(rows.shape)
        elif described["values"] != "same":
            factor = {"far": 1e6 * scale, "huge": 1e300, "tiny": 1e-300, "nan": np.nan, "zeros": 0.0}
            rows = factor[described["values"]] * rng.random(rows.shape)
    return wrap(rows, described["container"], described["seed"])

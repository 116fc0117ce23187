"""Contents of tables: numbers of every size and pattern, as float64, described by a small dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np

from .values import choose

ROWS = (0, 1, 2, 3, 4, 5, 7, 10, 12, 20, 25, 30, 40, 40, 50, 60, 60, 80, 100, 150)
COLUMNS = (0, 1, 2, 2, 3, 3, 4, 5, 5, 8, 10, 20, 50)
ORDINARY = ("normal", "blobs", "integers", "uniform")
ODD = (
    "constant", "zeros", "duplicates", "subnormal", "huge_integers", "mixed_scales", "line", "outlier", "far",
    "constant_column", "one_hot", "negative_zero", "two_values", "alternating_huge", "counts",
)  # fmt: skip


def draw_table(rng: np.random.Generator) -> dict[str, Any]:
    """Draw the description of a table: mostly small and ordinary, sometimes large, extreme or with NaN or inf."""
    n, D = choose(rng, ROWS), choose(rng, COLUMNS)
    if rng.random() < 0.75:  # keep most of them large enough for a map
        n, D = max(n, 20), max(D, 2)
    if rng.random() < 0.01:
        n, D = choose(rng, [(600, 5), (1500, 3), (3000, 2), (40, 2000), (300, 300)])
    table = {"rows": n, "columns": D, "seed": int(rng.integers(1000))}
    table["values"] = choose(rng, ORDINARY if rng.random() < 0.55 else ODD)
    if rng.random() < 0.2:
        table["scale"] = float(f"{10 ** rng.uniform(-300, 300):.2g}")
    if rng.random() < 0.04:
        table["spoil"] = choose(rng, ["nan", "inf", "-inf", "all nan", "nan row", "nan column"])
    return table


def make_table(table: dict[str, Any]) -> np.ndarray:
    """Return the table (n, D) in float64."""
    n, D, rng = table["rows"], table["columns"], np.random.default_rng(table["seed"])
    with np.errstate(all="ignore"):
        X = table.get("scale", 1.0) * _CONTENTS[table["values"]](rng, n, D)
    return _spoiled(X, table.get("spoil"), rng)


def _blobs(rng: Any, n: int, D: int) -> Any:
    return rng.normal(size=(4, D))[rng.integers(4, size=n)] * 5 + rng.normal(size=(n, D))


def _duplicates(rng: Any, n: int, D: int) -> Any:
    return rng.normal(size=(max(1, n // 5), D))[rng.integers(max(1, n // 5), size=n)]


def _outlier(rng: Any, n: int, D: int) -> Any:
    X = rng.normal(size=(n, D))
    X[:1] *= 10.0 ** rng.integers(3, 300)
    return X


def _constant_column(rng: Any, n: int, D: int) -> Any:
    X = rng.normal(size=(n, D))
    X[:, :1] = 7.0
    return X


def _one_hot(rng: Any, n: int, D: int) -> Any:
    return np.eye(max(D, 1))[rng.integers(max(D, 1), size=n)][:, :D]


_CONTENTS = {
    "normal": lambda rng, n, D: rng.normal(size=(n, D)),
    "blobs": _blobs,
    "integers": lambda rng, n, D: rng.integers(-9, 10, size=(n, D)).astype(float),
    "uniform": lambda rng, n, D: rng.random((n, D)),
    "constant": lambda rng, n, D: np.full((n, D), 3.5),
    "zeros": lambda rng, n, D: np.zeros((n, D)),
    "duplicates": _duplicates,
    "subnormal": lambda rng, n, D: rng.integers(0, 50, size=(n, D)) * 5e-324,
    "huge_integers": lambda rng, n, D: rng.integers(2**52, 2**63 - 1, size=(n, D)).astype(float),
    "mixed_scales": lambda rng, n, D: rng.normal(size=(n, D)) * 10.0 ** rng.integers(-150, 150, size=D),
    "line": lambda rng, n, D: rng.normal(size=(n, 1)) * np.ones(D),
    "outlier": _outlier,
    "far": lambda rng, n, D: rng.normal(size=(n, D)) + 1e12,
    "constant_column": _constant_column,
    "one_hot": _one_hot,
    "negative_zero": lambda rng, n, D: rng.choice([0.0, -0.0, 1.0], size=(n, D)),
    "two_values": lambda rng, n, D: rng.choice([0.0, 1.0], size=(n, 1)) * np.ones(D),
    "alternating_huge": lambda rng, n, D: rng.choice([-1.7e308, 1.7e308, 1.0], size=(n, D)),
    "counts": lambda rng, n, D: rng.poisson(0.5, size=(n, D)).astype(float),
}


def _spoiled(X: np.ndarray, how: str | None, rng: Any) -> np.ndarray:
    """Return the table with NaN or inf in some places."""
    if how is None or not X.size:
        return X
    i, j = rng.integers(X.shape[0]), rng.integers(X.shape[1])
    if how == "all nan":
        X[:] = np.nan
    elif how == "nan row":
        X[i] = np.nan
    elif how == "nan column":
        X[:, j] = np.nan
    else:
        X[i, j] = float(how)
    return X


def as_distances(X: np.ndarray, seed: int, fault: str | None) -> np.ndarray:
    """Return Euclidean distances between the rows of X; `fault` makes them invalid or incomplete."""
    with np.errstate(all="ignore"):
        D = np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    rng = np.random.default_rng(seed)
    if fault is None or not D.size:
        return D
    i, j = rng.integers(len(D), size=2)
    if fault == "asymmetric":
        D[i, j] += 1 + D.max()
    elif fault == "diagonal":
        D[i, i] = 1.0
    elif fault == "negative":
        D[i, j] = D[j, i] = -1.0
    elif fault == "missing":
        D[i, j] = D[j, i] = np.nan
    elif fault == "not square":
        D = D[:-1]
    elif fault == "many missing":
        mask = np.triu(rng.random(D.shape) < 0.7, 1)
        D[mask | mask.T] = np.nan
    return D


def as_affinities(X: np.ndarray, seed: int, fault: str | None) -> np.ndarray:
    """Return affinities between the rows of X; `fault` makes them invalid, sparse or huge."""
    D = as_distances(X, seed, None)
    with np.errstate(all="ignore"):
        P = np.exp(-D / (D.mean() or 1.0)) if D.size else D
    rng = np.random.default_rng(seed)
    np.fill_diagonal(P, 0.0)
    if fault is None or not P.size:
        return P
    i, j = rng.integers(len(P), size=2)
    if fault == "empty row":
        P[i] = 0.0
    elif fault == "isolated":
        P[i] = P[:, i] = 0.0
    elif fault == "huge":
        P *= 1e300
    elif fault == "tiny":
        P *= 1e-300
    elif fault == "one huge":
        P[i, j] = 1e300
    elif fault == "negative":
        P[i, j] = -1.0
    elif fault == "sparse":
        P[rng.random(P.shape) < 0.9] = 0.0
    elif fault == "blocks":
        half = len(P) // 2
        P[:half, half:] = P[half:, :half] = 0.0
    return P


DISTANCE_FAULTS = (None, None, None, "asymmetric", "diagonal", "negative", "missing", "many missing", "not square")
AFFINITY_FAULTS = (
    None, None, None, "empty row", "isolated", "huge", "tiny", "one huge", "negative", "sparse", "blocks",
)  # fmt: skip

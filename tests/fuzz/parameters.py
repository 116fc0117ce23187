"""Parameters of the estimators: ordinary, extreme and wrong values for each name."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.methods import PUBLIC

from equipoise.methods.umap import MAX_NEGATIVES

from . import values
from .values import choose, extreme, number, wrong

METRICS = (
    "cosine", "manhattan", "chebyshev", "correlation", "inner_product", "sqeuclidean", "jaccard", "hamming",
    "haversine", "mahalanobis", "seuclidean", "minkowski", "nan_euclidean", "yule", "braycurtis", "canberra", "dice",
    "precomputed", "unknown",
)  # fmt: skip
CALLABLE_METRICS = ("cityblock", "nan", "negative", "zero", "text", "random", "nothing", "array", "fails")
ENGINES = ("reference", "exact", "exact", "grid", "grid", "sampled", "torch")
SMALL = ("n_iter", "epochs", "n_init")  # work that grows without bound is no hang
CHOICES: dict[str, tuple[Any, ...]] = {
    "n_components": (1, 2, 2, 3, 3, 4, 10, 0, 100),
    "perplexity": ("auto", 2, 5, 10, 30, [3, 10], 1, 1.5, 1000, {"$": "tuple", "items": [5, 8]}),
    "n_neighbors": (1, 2, 5, 10, 15, 100, "auto"),
    "n_landmarks": (None, 2, 5, 10, 30, 1000),
    "affinity": ("gaussian", "uniform", "precomputed", "fuzzy"),
    "init": ("auto", "pca", "random", "spectral", "unknown"),
    "solver": ("eigen", "flow", "lbfgs", "majorize", "smacof", "descent"),
    "stress": ("metric", "ordinal", "relative", "log", "max", "max_ratio", "sammon", "interval"),
    "loss": ("effective", "intended", "sampled", "cross_entropy"),
    "engine": ENGINES,
    "device": ("auto", "cpu", "cuda", "cuda:7", "mps"),
    "deterministic": (True, False),
    "divergence": (
        {"$": "public", "module": "divergences", "class": "KL"},
        {"$": "public", "module": "divergences", "class": "ChiSquare"},
        {"$": "public", "module": "divergences", "class": "Hellinger"},
        "kl",
    ),
    "optimizer": (None, {"$": "public", "module": "", "class": "Momentum"}),
    "bandwidth": ("local", "global", float("inf"), 1.0, 1e-3, 100.0),
    "callbacks": ([], [{"$": "function", "name": "stop"}], [{"$": "function", "name": "fails"}], [1]),
    "verbose": (0, 0, 1),
    "random_state": (0, 1, None, {"$": "random state"}, {"$": "generator"}),
    "n_jobs": (1, 2, -1, None, 64),
    "weights": (None, "inverse", {"$": "array", "shape": [40, 40]}),
    "negative_sample_rate": (1, 5, 20, MAX_NEGATIVES + 1, 2**31),
    "batch_size": (1, 2, 32, 512, 10**6),
    "g": ({"$": "function", "name": "identity"}, {"$": "function", "name": "each"}),
    "h": ({"$": "function", "name": "identity"}, {"$": "function", "name": "each"}),
}
RANGES = {
    "early_exaggeration": (0.1, 100), "exaggeration": (0.1, 100), "learning_rate": (1e-3, 1e4), "tol": (1e-8, 1),
    "dof": (0.05, 20), "beta": (0.01, 10), "r0": (1e-3, 10), "alpha": (0.05, 3), "eta": (1e-3, 10), "rho": (0.05, 1),
    "min_dist": (1e-3, 1), "spread": (0.1, 5), "target_weight": (0.01, 1), "reg": (1e-6, 1),
}  # fmt: skip
WORDS = (
    "affinity", "init", "solver", "stress", "loss", "engine", "device", "kernel", "divergence", "optimizer", "g", "h",
)  # fmt: skip
NAMES = {Method.__name__: tuple(Method().get_params(deep=False)) for Method in PUBLIC}


def draw_parameters(rng: np.random.Generator, method: str) -> dict[str, Any]:
    """Draw up to four parameters of a method, and settings that keep the run short."""
    names = [name for name in NAMES[method] if name not in SMALL]
    count = min(len(names), choose(rng, [0, 1, 1, 2, 2, 3, 4]))
    own = [name for name in names if name in RANGES or name in ("engine", "solver", "stress", "loss", "kernel")]
    drawn = {choose(rng, own if own and rng.random() < 0.5 else names) for _ in range(count)}
    settings = {name: draw_value(rng, name) for name in sorted(drawn)}
    for name in SMALL:
        if name in NAMES[method]:
            settings.setdefault(name, _short(rng, name, settings))
    if "random_state" in NAMES[method]:
        settings.setdefault("random_state", 0)
    if method == "Parametric":
        settings.setdefault("device", "cpu")
        settings.setdefault("method", _inner(rng))
    return settings


def _short(rng: np.random.Generator, name: str, settings: dict[str, Any]) -> Any:
    """Return a small number of iterations, or now and then a value that must be refused."""
    if rng.random() < 0.03:
        return choose(rng, [0, -1, 2.5, None, "a", float("nan"), True])
    if name != "n_iter":
        return 1 + int(rng.integers(2))
    return int(choose(rng, [1, 2, 5, 12, 25, 60]))


def _inner(rng: np.random.Generator) -> Any:
    """Return the description of the method of a Parametric."""
    name = choose(rng, ["TSNE", "UMAP", "SymmetricSNE", "GSNE", "PowerSNE", "SphericalSNE", "PCA", "MDS"])
    return {"$": "estimator", "method": name, "parameters": draw_parameters(rng, name)}


def draw_value(rng: np.random.Generator, name: str) -> Any:
    """Draw a value of a parameter: mostly ordinary, otherwise extreme or of a wrong type."""
    r = rng.random()
    if name == "metric" and r < 0.95:
        named = rng.random() < 0.8
        return choose(rng, METRICS) if named else {"$": "function", "name": choose(rng, CALLABLE_METRICS)}
    if name == "random_state" and r < 0.7:
        return choose(rng, (*CHOICES[name], *values.SEEDS))
    if name == "negative_sample_rate" and r < 0.9:
        return choose(rng, CHOICES[name])
    if r < (0.93 if name in WORDS else 0.65):
        return _ordinary(rng, name)
    if r < 0.93:
        value = extreme(rng)
        slow = name == "negative_sample_rate" and 1000 < value <= MAX_NEGATIVES
        return 1000 if slow else value
    return wrong(rng)


def _ordinary(rng: np.random.Generator, name: str) -> Any:
    if name == "kernel":
        return values.kernel(rng)
    if name == "optimizer" and rng.random() < 0.7:
        return values.named_object(rng, "", values.RULES)
    if name == "divergence" and rng.random() < 0.4:
        alpha = number(rng) if rng.random() < 0.5 else extreme(rng)
        return {"$": "public", "module": "divergences", "class": "Alpha", "arguments": {"alpha": alpha}}
    if name in ("g", "h") and rng.random() < 0.6:
        kind = choose(rng, ["huge", "indefinite", "nan", "nothing", "fails", "matrix", "diagonal"])
        if kind in ("matrix", "diagonal"):
            return {"$": "array", "shape": [2, 2] if kind == "matrix" else [2], "scale": 10.0 ** rng.integers(-5, 5)}
        return {"$": "function", "name": kind}
    if name == "init" and rng.random() < 0.3:
        shape = [int(choose(rng, [20, 30, 40, 60])), 2]
        return {"$": "array", "shape": shape, "scale": float(choose(rng, [1.0, 1e-5, 1e5, 1e300, 0.0]))}
    if name in RANGES:
        return number(rng, *RANGES[name]) * (-1 if name == "alpha" and rng.random() < 0.5 else 1)
    return choose(rng, CHOICES.get(name, (None, 1, 2)))

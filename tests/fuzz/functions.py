"""Public functions other than the estimators: what they are called with, and what they return."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq
from equipoise import data, procrustes
from equipoise.data import Dataset

from . import tables, values
from .containers import draw_container, wrap
from .parameters import draw_parameters, draw_value
from .tables import make_table
from .values import build, building, choose, extreme, number, wrong

Results = list[tuple[str, Any, Any]]  # name, value, shape (None: any)
SPACES = ("Euclidean", "PNorm", "Precomputed", "Sphere", "Discrete", "GraphGeodesic", "LogCompressed", "Product")


def draw_function(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a function, its main input and a few arguments."""
    name = choose(rng, list(FUNCTIONS))
    table = tables.draw_table(rng)
    table["rows"] = min(table["rows"], 300)
    case = {"function": name, "table": table, "container": draw_container(rng), "arguments": {}}
    if rng.random() < 0.5:
        case["container"] = {"kind": "array"}
    for argument, draw in _ARGUMENTS.get(name, {}).items():
        if rng.random() < 0.35:
            r = rng.random()
            case["arguments"][argument] = draw(rng) if r < 0.7 else extreme(rng) if r < 0.85 else wrong(rng)
    case["map"] = {
        "rows": choose(rng, [0, 0, 0, 0, 0, 0, 0, 1, -1]),  # more or fewer than the table has
        "columns": choose(rng, [1, 2, 2, 2, 2, 3, 0, 5]),
        "scale": choose(rng, [1.0, 1.0, 1.0, 1e-5, 1e30, 1e-300, 1e300, 0.0]),
    }
    if rng.random() < 0.08:
        case["map"]["spoil"] = choose(rng, ["nan", "inf"])
    return case


def run_function(case: dict[str, Any]) -> Results:
    """Call the function of a case and return what it returned, by name."""
    return FUNCTIONS[case["function"]](case, build(case["arguments"]))


def _x(case: dict[str, Any]) -> Any:
    with building():
        return wrap(make_table(case["table"]), case["container"], case["table"]["seed"])


def _y(case: dict[str, Any], seed: int = 1) -> np.ndarray:
    """Return a map of the table's rows."""
    described = case["map"]
    shape = max(0, case["table"]["rows"] + described["rows"]), described["columns"]
    Y = described["scale"] * np.random.default_rng(seed).normal(size=shape)
    if described.get("spoil") and Y.size:
        Y[-1, -1] = float(described["spoil"])
    return Y


def _labels(rng: np.random.Generator) -> Any:
    return {"$": "array", "shape": [int(choose(rng, [20, 40, 60]))]} if rng.random() < 0.3 else choose(rng, ["a", [1]])


def _evaluate(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    report = eq.evaluate(_x(case), _y(case), **arguments)
    return [("text", str(report), None), ("trust", report.trust, None)]


def _compare(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    return [("text", str(eq.compare(_x(case), {"a": _y(case), "b": _y(case, 2)}, **arguments)), None)]


def _stability(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    method = eq.TSNE(n_iter=3, random_state=0) if case["map"]["columns"] != 3 else eq.PCA()
    found = eq.stability(method, _x(case), **{"runs": 2} | arguments)
    return [("text", str(found), None), ("losses", found.losses if case["map"]["columns"] != 3 else 0.0, None)]


def _sweep(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    swept = {"values": {"perplexity": [3, 5]}} | arguments
    return [("text", str(eq.sweep(eq.TSNE(n_iter=3, random_state=0), _x(case), **swept)), None)]


def _procrustes(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    Y, T = _y(case), _y(case, 2)
    similarity = procrustes.fit_similarity(Y, T)
    return [
        ("aligned", similarity(Y), T.shape),
        ("disagreement", procrustes.disagreement(Y, T), ()),
        ("superimposed", procrustes.superimpose(np.stack([Y, T])), (2, *T.shape)),
    ]


def _memory(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    return [("text", str(eq.estimate_memory(**{"n": 100, "D": 5} | arguments)), None)]


def _forces(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    method = arguments.pop("method", eq.TSNE())
    curves = eq.forces(method, **arguments)
    return [("text", str(curves), None)]


def _neighbors(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    graph = eq.neighbors.nearest_neighbors(_x(case), **{"k": 3} | arguments)
    return [("distances", graph.distances, None), ("indices", graph.indices, None)]


def _space(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    kind = arguments.pop("space", "Euclidean")
    X = _x(case)
    space = _make_space(kind, X, arguments) if isinstance(kind, str) else eq.spaces.as_space(kind)
    report = eq.spaces.check_metric(space)
    points, distances = eq.spaces.farthest_points(space, min(3, space.n))
    summary = eq.spaces.summarize_distortion(space, _y(case))
    return [("text", f"{report}{summary}", None), ("points", points, None), ("distances", distances, None)]


def _make_space(kind: str, X: Any, arguments: dict[str, Any]) -> Any:
    spaces = eq.spaces
    if kind == "Discrete":
        return spaces.Discrete(arguments.get("n", 10))
    if kind in ("LogCompressed", "Product"):
        inner = spaces.Euclidean(X)
        return spaces.LogCompressed(inner) if kind == "LogCompressed" else spaces.Product(inner, spaces.Discrete(2))
    if kind not in SPACES:
        return spaces.as_space(kind)
    name, default = {"PNorm": ("p", 2.0), "Sphere": ("radius", 1.0)}.get(kind, (None, None))
    return getattr(spaces, kind)(X, **{name: arguments.get(name, default)} if name else {})


def _canonical(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    X = _x(case)
    n = case["table"]["rows"]
    faces = arguments.pop("faces", np.array([[i, i + 1, i + 2] for i in range(max(0, n - 2))]))
    return [("form", eq.canonical_form(X, faces, **{"n_landmarks": 10} | arguments), None)]


def _plot(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    from matplotlib import pyplot

    with building():
        Y = wrap(_y(case), case["container"])
    figure = eq.plot(Y, **arguments)
    with tempfile.TemporaryDirectory() as folder:
        figure.savefig(Path(folder, "map.png"), dpi=40)
    pyplot.close("all")
    return []


def _page(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    with building():
        Y = wrap(_y(case), case["container"])
    page = eq.page(Y, **arguments)
    with tempfile.TemporaryDirectory() as folder:
        page.save(Path(folder, "map.html"))
    return []


def _prepare(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    X = data.check_rows(_x(case), min_rows=1)
    prepared = data.prepare(Dataset("t", X, None, ()), **arguments)
    return [("prepared", prepared.X, None)]


def _loss_problem(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    factor = arguments.pop("factor", 1.0)
    problem = eq.LossProblem(lambda Y: factor * (Y**2).sum(), _y(case), **{"n_iter": 5} | arguments)
    problem.optimize()
    return [("Y", problem.Y, None)]


def _anndata(case: dict[str, Any], arguments: dict[str, Any]) -> Results:
    import anndata

    with building():
        annotated = anndata.AnnData(X=_x(case))
    eq.anndata.tsne(annotated, **{"n_iter": 3, "random_state": 0} | arguments)
    return [("X_tsne", annotated.obsm["X_tsne"], None)] if "X_tsne" in annotated.obsm else []


FUNCTIONS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Results]] = {
    "evaluate": _evaluate,
    "compare": _compare,
    "stability": _stability,
    "sweep": _sweep,
    "procrustes": _procrustes,
    "estimate_memory": _memory,
    "forces": _forces,
    "nearest_neighbors": _neighbors,
    "space": _space,
    "canonical_form": _canonical,
    "plot": _plot,
    "page": _page,
    "prepare": _prepare,
    "LossProblem": _loss_problem,
    "anndata": _anndata,
}


def _of(*options: Any) -> Callable[[np.random.Generator], Any]:
    return lambda rng: choose(rng, options)


def _method(rng: np.random.Generator) -> Any:
    name = choose(rng, ["TSNE", "GSNE", "PowerSNE", "SymmetricSNE", "UMAP", "SphericalSNE"])
    return {"$": "estimator", "method": name, "parameters": draw_parameters(rng, name)}


def _metric(rng: np.random.Generator) -> Any:
    return draw_value(rng, "metric")


_SEED = _of(*values.SEEDS)
_COLORS = _of(None, "a", "red", list(range(40)), list("abcd") * 10, {"$": "array", "shape": [40]}, [float("nan")] * 40)
_ARGUMENTS: dict[str, dict[str, Callable[[np.random.Generator], Any]]] = {
    "evaluate": {"k": _of("auto", 1, 5, 1000), "metric": _metric, "labels": _labels, "random_state": _SEED},
    "compare": {"k": _of("auto", 1, 5, 1000), "metric": _metric, "labels": _labels, "n_jobs": _of(1, 2, 64)},
    "stability": {"runs": _of(1, 2, 3), "subsample": _of(1.0, 0.5, 0.01), "noise": number, "k": _of(1, 5, 1000)},
    "sweep": {
        "values": _of({"perplexity": [2, 5]}, {"dof": [1e-300, 1e300]}, {}, {"nothing": [1]}, {"perplexity": []}),
        "k": _of(1, 5, 1000),
        "random_state": _SEED,
    },
    "estimate_memory": {
        "n": _of(1, 10**6, 10**15), "D": _of(1, 2000), "n_components": _of(1, 2, 3, 50), "perplexity": number,
        "engine": _of("auto", "exact", "grid", "sampled", "torch", "a"),
    },
    "forces": {"method": _method, "p": number, "Z": number, "r": _of({"$": "array", "shape": [5]}, [0.0, 1e300], [])},
    "nearest_neighbors": {
        "k": _of(1, 3, 10, 1000), "metric": _metric, "n_threads": _of(1, 2, 64), "min_recall": _of(0.5, 0.99, 1.0),
    },
    "space": {"space": _of(*SPACES, "unknown"), "p": number, "radius": number, "n": _of(1, 2, 10, 10**9)},
    "canonical_form": {
        "n_landmarks": _of(2, 10, 1000), "method": _of("heat", "exact", "fmm", "a"), "random_state": _SEED,
        "faces": _of([[0, 1, 2]], [[0, 0, 0]], [[0, 1, 10**6]], [], [[-1, 0, 1]], {"$": "array", "shape": [4, 3]}),
    },
    "plot": {"color": _COLORS, "names": _of(["a"], ["a", "b"]), "title": _of("t", "$x", "a" * 999), "size": number},
    "page": {"color": _COLORS, "names": _of(["a"], ["a", "b"]), "title": _of("t", "</script>"), "dark": _of(True)},
    "prepare": {"standardize": _of(True), "log1p": _of(True), "pca": _of(1, 2, 5, 1000)},
    "LossProblem": {"factor": number, "learning_rate": number, "device": _of("cpu", "cuda"), "optimizer": _of(None)},
    "anndata": {"key_added": _of("a", "X_tsne", ""), "perplexity": number, "use_rep": _of("X", "X_pca", "a")},
}  # fmt: skip

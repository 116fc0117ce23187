"""More cases of golden.py: measures, spaces, neighbours, files, the command line and the studio."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from golden_cases import COUNTS, DIGITS, LABELS, SMALL, SPARSE_D, START, D, Results, X, brief, case
from scipy import sparse

import equipoise as eq
from equipoise import data


def numbers(thing: Any, prefix: str = "") -> Results:
    """Return the numbers and arrays in a result of a measure, by the names of its fields."""
    if isinstance(thing, dict):
        fields = {str(key): value for key, value in thing.items()}
    elif dataclasses.is_dataclass(thing):
        fields = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
    elif isinstance(thing, tuple | list):
        fields = {str(i): value for i, value in enumerate(thing)}
    elif isinstance(thing, float):  # measures are floats with a standard error
        return {prefix: repr(float(thing)), **numbers(getattr(thing, "error", None), f"{prefix}.error")}
    else:
        return {prefix: thing} if isinstance(thing, int | np.integer | np.ndarray) else {}
    found = {}
    for name, value in fields.items():
        found |= numbers(value, f"{prefix}.{name}" if prefix else name)
    return found


@case("evaluate")
def evaluate() -> Results:
    return numbers(eq.evaluate(X, START, LABELS, n_jobs=1))


@case("evaluate cosine")
def evaluate_cosine() -> Results:
    return numbers(eq.evaluate(X, START, LABELS, metric="cosine", k=7, n_jobs=1))


@case("evaluate distances")
def evaluate_distances() -> Results:
    return numbers(eq.evaluate(D, START[:60], metric="precomputed", n_jobs=1))


@case("evaluate sparse table")
def evaluate_sparse() -> Results:
    return numbers(eq.evaluate(COUNTS, START, n_jobs=1))


@case("evaluate space")
def evaluate_space() -> Results:
    return numbers(eq.evaluate(eq.spaces.PNorm(SMALL, 1), START[:60], n_jobs=1))


@case("measures")
def measures() -> Results:
    found: Results = {}
    module = import_module("equipoise.evaluate")
    for name in (
        "trustworthiness",
        "continuity",
        "neighbor_recall",
        "recall_curve",
        "stress",
        "shepard",
        "distortions",
    ):
        for metric in ("euclidean", "manhattan"):
            found |= numbers(getattr(module, name)(X, START, metric=metric), f"{name} {metric}")
    for name in ("one_nn_error", "knn_accuracy", "silhouette", "davies_bouldin", "davies_bouldin_curve"):
        labels = () if name.endswith("curve") else (LABELS,)
        found |= numbers(getattr(module, name)(START, *labels), name)
    found |= numbers(module.preservation_ratio(X, START, 5, 10), "preservation_ratio")
    found |= numbers(module.triplet_accuracy(X, START), "triplet_accuracy")
    found |= numbers(module.centroid_correlation(X, START, LABELS), "centroid_correlation")
    return found | {"loss": module.loss(brief(eq.TSNE), X, START)}


@case("compare")
def compare() -> Results:
    found = eq.compare(X, {"one": START, "two": X[:, 20:22] + START}, LABELS, n_jobs=1)
    return {f"{name} {key}": value for name in ("one", "two") for key, value in numbers(found[name]).items()}


@case("stability")
def stability() -> Results:
    return numbers(eq.stability(brief(eq.TSNE, init="random"), SMALL, runs=3, subsample=0.9, noise=0.01, k=5))


@case("sweep")
def sweep() -> Results:
    values = {"perplexity": [15, 5], "exaggeration": [1.0, 2.0]}
    found = numbers(eq.sweep(brief(eq.TSNE, n_iter=20), SMALL, values, k=5))
    return found | {f"MDS {k}": v for k, v in numbers(eq.sweep(brief(eq.MDS), SMALL, {"n_iter": [3, 6]}, k=5)).items()}


@case("canonical form")
def canonical_form() -> Results:
    vertices, faces = surface(14)
    return {
        "exact": eq.canonical_form(vertices, faces, method="exact", n_landmarks=60, n_jobs=1),
        "heat": eq.canonical_form(vertices, faces, method="heat", n_jobs=1),
    }


def surface(side: int) -> tuple[Any, Any]:
    """Return the vertices and triangles of a wavy sheet."""
    u, v = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    vertices = np.stack([u, v, 2 * np.sin(u / 3.0) * np.cos(v / 4.0)], axis=2).reshape(-1, 3).astype(float)
    corner = (u * side + v)[:-1, :-1].ravel()
    lower = np.stack([corner, corner + side, corner + 1], axis=1)
    upper = np.stack([corner + 1, corner + side, corner + side + 1], axis=1)
    return vertices, np.concatenate([lower, upper])


@case("spaces")
def spaces() -> Results:
    s = eq.spaces
    base = s.Euclidean(SMALL)
    graph = s.GraphGeodesic.from_table(SMALL, n_neighbors=6)
    sphere = s.Sphere(SMALL[:, :3] / np.linalg.norm(SMALL[:, :3], axis=1, keepdims=True))
    made = {
        "Euclidean": base,
        "PNorm": s.PNorm(SMALL, np.inf),
        "Discrete": s.Discrete(20),
        "Precomputed": s.Precomputed(D),
        "Sphere": sphere,
        "GraphGeodesic": graph,
        "given graph": s.GraphGeodesic(SPARSE_D),
        "MeshGeodesic exact": s.MeshGeodesic(*surface(8), "exact"),
        "MeshGeodesic heat": s.MeshGeodesic(*surface(8)),
        "LogCompressed": s.LogCompressed(graph),
        "Product": s.Product(s.Discrete(3), s.Precomputed(D[:15, :15])),
        "Restriction": s.Restriction(graph, np.arange(0, 60, 3)),
    }
    found: Results = {name: space.matrix() for name, space in made.items()}
    Y = START[:60]
    found |= numbers(s.summarize_distortion(graph, Y), "distortion")
    found |= {"dilation": s.dilation(base, Y, [0, 5], [7, 9]), "distortion": s.distortion(base, Y)}
    found |= {"isometry": int(s.is_isometry(base, SMALL)), **numbers(s.farthest_points(graph, 9), "farthest")}
    return found | numbers(s.check_metric(D**2).violations, "violations")


@case("neighbors")
def neighbors() -> Results:
    found: Results = {}
    tables = {"digits": DIGITS.X[:400], "small": SMALL, "sparse": COUNTS, "tree": data.toys.swiss_roll(500).X}
    for name, table in tables.items():
        for metric in ("euclidean", "cosine", "manhattan", "inner_product"):
            if name != "sparse" or metric != "manhattan":
                found |= numbers(eq.neighbors.nearest_neighbors(table, 7, metric), f"{name} {metric}")
    return found


@case("neighbors by cells")
def neighbors_by_cells() -> Results:
    rows = np.random.RandomState(1).standard_normal((3000, 12)).astype(np.float32)
    return numbers(eq.neighbors.nearest_neighbors(rows, 5, n_threads=1, min_recall=0.9))


@case("forces")
def forces() -> Results:
    methods = (eq.SNE(), eq.TSNE(), eq.TSNE(dof=2), eq.PowerSNE(), eq.GSNE(), eq.SphericalSNE(), eq.SymmetricSNE())
    curves = eq.forces(*methods, p=0.5, Z=2.0)
    return {
        f"{i} {side}": F for side in ("attraction", "repulsion") for i, F in enumerate(getattr(curves, side).values())
    }


@case("data sets")
def data_sets() -> Results:
    found: Results = {}
    for name in data.DATASETS:
        if name in ("digits", "iris", "wine") or hasattr(data.toys, name):
            found[name] = data.load(name).X
    made = data.prepare(DIGITS, standardize=True, log1p=True, pca=5)
    return {**found, "prepared": made.X}


@case("data files")
def data_files() -> Results:
    with tempfile.TemporaryDirectory() as folder:
        csv, npy, npz, mtx = (Path(folder) / f"table.{suffix}" for suffix in ("csv", "npy", "npz", "mtx"))
        rows = ["name,a,b,kind", *(f"r{i},{a!r},{b!r},{'xy'[i % 2]}" for i, (a, b) in enumerate(SMALL[:, :2].tolist()))]
        csv.write_text("\n".join(rows))
        np.save(npy, SMALL)
        np.savez(npz, X=SMALL)
        sparse.save_npz(Path(folder) / "sparse.npz", COUNTS)
        import_module("scipy.io").mmwrite(mtx, COUNTS)
        table = data.read(csv, label="kind", id="name")
        found = {"csv": table.X, "labels": ",".join(map(str, table.labels)), "npy": data.read(npy).X}
        found |= {"mtx": data.read(mtx).X}
        for path in (npz, Path(folder) / "sparse.npz"):
            try:
                found[path.name] = data.read(path).X
            except ValueError:
                found[path.name] = "refused"
        return found


def command(*words: str | Path, files: tuple[Path, ...] = ()) -> Results:
    """Run the command line; return its exit code, the printed numbers except times, and the files it writes."""
    main = import_module("equipoise.cli").main
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            raise RuntimeError(f"{' '.join(map(str, words))}: {err.getvalue()}") from end
    text = re.sub(r"[\d.]+ s\b", "", out.getvalue())
    text = re.sub(r"/\S+", "", text)  # paths
    found: Results = {"code": code, "printed": " ".join(re.findall(r"\d+(?:\.\d+)?%?", text))}
    return found | {path.name: path.read_bytes() for path in files}


@case("command line")
def command_line() -> Results:
    found: Results = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        map_, model, moved, umap = (folder / file for file in ("digits.csv", "digits.eqz", "new.csv", "umap.npy"))
        pca = folder / "pca.tsv"
        short = ("--n-iter", "6", "--random-state", "0", "--n-jobs", "1")
        runs = {
            "embed": (("embed", "digits", "--out", map_, "--save", model, "--pca", "20", *short), (map_,)),
            "transform": (("transform", model, "digits", "--out", moved), (moved,)),
            "umap": (("embed", "iris", "--method", "umap", "--out", umap, "--standardize", *short), (umap,)),
            "pca": (("embed", "iris", "--method", "pca", "--out", pca), (pca,)),
            "evaluate": (("evaluate", "iris", pca), ()),
            "compare": (("compare", "iris", pca, umap), ()),
            "sweep": (("sweep", "iris", "--perplexity", "10", "5", *short), ()),
        }
        for verb, (words, files) in runs.items():
            found |= {f"{verb} {item}": value for item, value in command(*words, files=files).items()}
    return found


def studio() -> Any:
    """Return the module that defines the studio's Run and Recipe, in this or an earlier version."""
    for name in ("equipoise.studio", "equipoise.studio.session", "equipoise.views.studio"):
        with contextlib.suppress(ModuleNotFoundError):
            module = import_module(name)
            if hasattr(module, "Run") and hasattr(module, "Recipe"):
                return module
    raise ImportError("the studio's Run and Recipe are in no known module")


@case("studio run")
def studio_run() -> Results:
    run = studio().Run(X, n_jobs=1)
    run.step(30)
    run.change("perplexity", 12.0)
    changed = run.step(30).Y.copy()
    run.change("exaggeration", 2.0)
    run.step(50)
    run.rewind(60)
    last = run.step(20)
    pull, push = run.forces(last, 3)
    found = {"changed": changed, "rewound": last.Y, "curve": np.array(run.curve), "pull": pull, "push": push}
    again = studio().Run(X, run.recipe, n_jobs=1).step(last.iteration)
    return {**found, "repeated": again.Y, "loss": last.loss}


@case("studio methods")
def studio_methods() -> Results:
    module = studio()
    found: Results = {}
    for name in ("sne", "symmetricsne", "powersne", "gsne", "sphericalsne", "umap"):
        frame = module.Run(SMALL, module.Recipe(name, seed=3), n_jobs=1).step(20)
        found |= {f"{name} map": frame.Y, f"{name} loss": frame.loss}
    return found

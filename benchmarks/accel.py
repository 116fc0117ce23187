"""Example scripts of other libraries with and without equipoise.accel: time and trustworthiness of their maps.

    python benchmarks/accel.py FOLDER [FOLDER ...] [--runs 3] [--seconds 60] [--threads 2] [--only PART ...] [--all]
                               [--keep rows.jsonl] [--out benchmarks/results/accel.md]

A folder contains the scripts (.py) and notebooks (.ipynb) of one library, as in its repository: examples/manifold of
scikit-learn, examples of umap-learn, examples of openTSNE. Every run is a fresh process in a copy of the folder, with
and without accel in turn. fetch_openml returns MNIST and Fashion-MNIST from ../shared/data, and
data/macosko_2015.pkl.gz, which openTSNE's notebooks read, has the first 50 principal components of 5,000 images of
MNIST in place of its cells. Scripts that take minutes or need a download are left out, with the reason, unless --all.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import json
import os
import pickle
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import common
import numpy as np

PACKAGES = ["equipoise", "scikit-learn", "umap-learn", "openTSNE", "numpy", "scipy", "numba", "pynndescent"]
FIT_ONLY = ("inverse_transform", "update", "__add__", "__sub__", "__mul__")  # not maps
inside: list[Any] = []  # the estimators whose calls are under way
CELLS = ["Rods", "Cones", "Astrocytes", "Fibroblasts", "Microglia", "Muller glia", "Pericytes", "Bipolar cells"]
CELLS += ["Horizontal cells", "Amacrine cells"]
STAND_IN_ROWS = 5000
LEFT_OUT = {
    "inverse_transform_example.py": "70,000 images",
    "mnist_transform_new_data.py": "70,000 images",
    "plot_mnist_example.py": "70,000 images",
    "plot_fashion-mnist_example.py": "70,000 images; needs datashader",
    "plot_feature_extraction_classification.py": "211 fits",
    "03_preserving_global_structure.ipynb": "12 fits, some of perplexity 500",
    "04_large_data_sets.ipynb": "needs a download of a million cells",
    "05_animation.ipynb": "needs ffmpeg",
}
WARM_UP = "import numpy, umap\numap.UMAP(random_state=0).fit(numpy.random.RandomState(0).rand(200, 5))\n"


# Child process: one script.


def child(file: Path) -> None:
    """Run the script of the request; write the time of its calls and of the whole, and the quality of its maps."""
    request = json.loads(file.read_text())
    os.chdir(request["folder"])
    source = source_of(Path(request["script"]))
    imported = provide_data(source)
    start = time.perf_counter()
    from equipoise import accel

    if request["accel"]:
        accel.install()
        imported += time.perf_counter() - start
    maps: list[dict[str, Any]] = []
    from equipoise.accel.patches import Patches

    Patches([watch(answer, maps) for answer in accel.ANSWERS if not answer.path.endswith(FIT_ONLY)]).apply()
    sys.argv, sys.path[0] = [request["script"]], request["folder"]
    module = ModuleType("__main__")
    module.__file__ = request["script"]
    sys.modules["__main__"] = module
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    exec(compile(source, request["script"], "exec"), vars(module))
    whole = time.perf_counter() - start + imported
    fell_back = [f"{row.name}: {row.why}" for row in accel.calls() if not row.taken_over] if request["accel"] else []
    quality = [trust(found) for found in maps]
    seconds = [found["seconds"] for found in maps]
    common.answer(file, {"whole": whole, "seconds": seconds, "trust": quality, "fell_back": fell_back})


def watch(answer: Any, maps: list[dict[str, Any]]) -> Any:
    """Return a patch that records the time, the data and the map of each outermost call, whatever answers it."""
    from equipoise.accel.patches import Patch

    def replacement(original: Any) -> Any:
        def call(estimator: Any, *args: Any, **settings: Any) -> Any:
            start = time.perf_counter()
            inside.append(estimator)
            try:
                result = original(estimator, *args, **settings)
            finally:
                inside.pop()
            seconds = time.perf_counter() - start
            if inside:  # umap-learn starts from sklearn.manifold.SpectralEmbedding if the graph is not connected
                return result
            if hasattr(estimator, "affinities"):  # openTSNE
                X, Y = getattr(estimator.affinities, "knn_index", None), result
                X = None if X is None else X.data
            else:
                X = args[0] if args else settings["X"]
                Y = result if isinstance(result, np.ndarray) else estimator.embedding_
            precomputed = "precomputed" in (getattr(estimator, "metric", ""), getattr(estimator, "dissimilarity", ""))
            X = None if X is None or precomputed else np.asarray(X)
            maps.append({"seconds": seconds, "X": X, "Y": np.array(Y)})
            return result

        return call

    return Patch(answer.module, answer.path, replacement)


def trust(found: dict[str, Any]) -> float | None:
    """Return the trustworthiness of a map for the 10 nearest neighbours; above 3,000 rows of a sample of 3,000."""
    from sklearn.manifold import trustworthiness

    X, Y = found["X"], found["Y"]
    if X is None or len(X) < 25:
        return None
    rows = np.random.RandomState(0).permutation(len(X))[:3000]
    return float(trustworthiness(np.asarray(X)[rows], Y[rows], n_neighbors=10))


def source_of(script: Path) -> str:
    """Return the Python code of a script, or of the cells of a notebook without IPython's commands."""
    if script.suffix == ".py":
        return script.read_text(encoding="utf-8")
    cells = json.loads(script.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()]
    return "\n".join(line.removeprefix("%time ") for line in lines if not line.startswith(("%%", "%matplotlib")))


def provide_data(source: str) -> float:
    """Let fetch_openml return the images in ../shared/data, and write the stand-in for openTSNE's cells.

    Returns the time of those imports that the script would do itself.
    """
    seconds = 0.0
    if "fetch_openml" in source:
        start = time.perf_counter()
        from sklearn import datasets

        seconds = time.perf_counter() - start
        datasets.fetch_openml = fetch_openml
    if "macosko" in source:
        images = common.load("mnist", STAND_IN_ROWS)
        kinds = np.array(CELLS)[images.labels]
        with gzip.open("data/macosko_2015.pkl.gz", "wb") as file:
            pickle.dump({"pca_50": images.X, "CellType1": kinds}, file)
    return seconds


def fetch_openml(name: str, return_X_y: bool = False, **settings: Any) -> Any:
    """Stand in for sklearn.datasets.fetch_openml."""
    from sklearn.utils import Bunch

    X, labels = common.read("mnist" if name.startswith("mnist") else "fashion")
    data, target = np.asarray(X, dtype=np.float64), np.asarray(labels)
    return (data, target) if return_X_y else Bunch(data=data, target=target)


# Parent process.


def run(script: Path, root: Path, on: bool, threads: int, cache: Path) -> dict[str, Any]:
    """Return the result of one run of a script in a copy of its folder."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "examples"
        shutil.copytree(root, copy)
        (copy / "data").mkdir(exist_ok=True)
        (copy / "examples").symlink_to(copy)  # openTSNE's notebooks import examples.utils
        request = {"script": str(copy / script.relative_to(root)), "folder": str(copy), "accel": on}
        return common.run_child("accel.py", request, threads, cache)


def warm_up(threads: int, cache: Path) -> None:
    """Fill numba's cache with the code of umap-learn."""
    with tempfile.TemporaryDirectory() as folder:
        (script := Path(folder) / "warm_up.py").write_text(WARM_UP)
        run(script, Path(folder), False, threads, cache)


def measure(script: Path, root: Path, args: argparse.Namespace, cache: Path) -> dict[str, Any]:
    if not args.all and script.name in LEFT_OUT:
        return {"script": name_of(script, root), "failed": LEFT_OUT[script.name]}
    runs: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    start = time.perf_counter()
    while len(runs[True]) < args.runs and (not runs[True] or time.perf_counter() - start < args.seconds):
        for on in (False, True):
            result = run(script, root, on, args.threads, cache)
            if "failed" in result:
                where = "under accel" if on else "without accel"
                return {"script": name_of(script, root), "failed": f"fails {where}: {result['failed']}"}
            runs[on].append(result)
    theirs, ours = runs[False], runs[True]
    if len(theirs[0]["seconds"]) != len(ours[0]["seconds"]):
        calls = f"{len(theirs[0]['seconds'])} calls without accel, {len(ours[0]['seconds'])} with it"
        return {"script": name_of(script, root), "failed": calls}
    means = [
        [None if a[0] is None else float(np.mean(a)) for a in zip(*(r["trust"] for r in results), strict=True)]
        for results in (theirs, ours)
    ]
    pairs = [(a, b) for a, b in zip(*means, strict=True) if a is not None]
    return {
        "script": name_of(script, root),
        "calls": len(ours[0]["seconds"]),
        "fits": [median(sum(result["seconds"]) for result in results) for results in (theirs, ours)],
        "whole": [median(result["whole"] for result in results) for results in (theirs, ours)],
        "trust": [float(np.mean(column)) for column in zip(*pairs, strict=True)],
        "worst": min((b - a for a, b in pairs), default=None),
        "fell_back": ours[0]["fell_back"],
        "runs": len(ours),
    }


def name_of(script: Path, root: Path) -> str:
    return f"{root.name}/{script.relative_to(root)}"


def page(rows: list[dict[str, Any]], command: str, where: dict[str, Any]) -> str:
    """Return the page of results."""
    lines = [
        *common.header("Example scripts of other libraries under accel", command, where),
        "",
        "| script | runs | maps | fits, s: theirs, ours | ratio | script, s: theirs, ours | ratio"
        " | trustworthiness: theirs, ours | largest loss of a map | answered by the original |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in (row for row in rows if "failed" not in row and row["calls"]):
        (a, b), (c, d) = row["fits"], row["whole"]
        trusts = "{:.4f}, {:.4f}".format(*row["trust"]) if row["trust"] else "–"
        worst = "–" if row["worst"] is None else f"{max(0.0, -row['worst']):.4f}"
        lines.append(
            f"| {row['script']} | {row['runs']} | {row['calls']} | {a:.2f}, {b:.2f} | {a / b:.1f} | {c:.2f}, {d:.2f}"
            f" | {c / d:.1f} | {trusts} | {worst} | {'; '.join(row['fell_back']) or '–'} |"
        )
    lines += ["", "Not run:", ""]
    lines += [f"- {row['script']}: {row['failed']}" for row in rows if "failed" in row]
    lines = [line.replace("sklearn.manifold.LocallyLinearEmbedding: ", "") for line in lines]
    about = [
        "",
        "Medians over the runs, each in a fresh process, with and without accel in turn. **Fits** is the time in the",
        "calls that accel can answer; under accel the first includes the import of the method. **Script** is the time",
        "from its first line to its last, with its imports except that of NumPy, plus the import of `equipoise.accel`.",
        "The bytecode of Equipoise and numba's cache of umap-learn's code are written before. **Trustworthiness** is",
        "the mean over the maps of a script and over its runs, of 10 neighbours, on at most 3,000 rows; maps of",
        "precomputed distances are left out. **Largest loss of a map** is that of one map of a script, as a mean over",
        "the runs: a script without seeds has other data or other maps in every run. Images of MNIST stand in for the",
        "cells that openTSNE's notebooks read: 5,000 rows of 50 principal components. Other work on the machine slows",
        "loops of several threads that wait for one another, as those of scikit-learn and openTSNE do: at a high load",
        "average the ratios are larger than on an idle machine.",
    ]
    return "\n".join([*lines, *about]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="time after which a script is not run again")
    parser.add_argument("--all", action="store_true", help="also run the scripts that are usually left out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=common.ROOT / "benchmarks" / "results" / "accel.md")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the names of the scripts to run")
    parser.add_argument("--keep", type=Path, help="file of results to add to and to write the page from")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child)
    where = common.machine(args.threads, PACKAGES)
    lines = args.keep.read_text().splitlines() if args.keep and args.keep.exists() else []
    rows = [json.loads(line) for line in lines]
    compileall.compile_dir(common.ROOT / "src" / "equipoise", quiet=1)
    with tempfile.TemporaryDirectory() as cache:
        warm_up(args.threads, Path(cache))
        for root in (folder.absolute() for folder in args.folders):
            for script in sorted(root.rglob("*.py")) + sorted(root.glob("*.ipynb")):
                if script.name not in ("__init__.py", "utils.py") and any(part in str(script) for part in args.only):
                    rows.append(measure(script, root, args, Path(cache)))
                    print(json.dumps(rows[-1]), flush=True)
    if args.keep:
        args.keep.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows.sort(key=lambda row: str(row["script"]))
    folders = dict.fromkeys(row["script"].partition("/")[0] for row in rows)
    command = shlex.join(["python", "benchmarks/accel.py", *folders])
    args.out.write_text(page(rows, command, where), encoding="utf-8")


if __name__ == "__main__":
    main()

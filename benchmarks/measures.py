"""Quality measures: trustworthiness of digits compared with scikit-learn, and all measures on 70,000 images of MNIST.

    python benchmarks/measures.py [--runs 9] [--large 70000] [--threads 2] [--out benchmarks/results/measures.md]

Digits get noise of standard deviation 0.01: with integer pixels many distances are tied, and scikit-learn ranks ties in
the order its sort leaves them. Both libraries run in one process, first untimed and then in alternation; the page shows
medians. The maps are t-SNE of the digits, and the first two of the 50 principal components that are the data for MNIST.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np

import equipoise as eq

ev = importlib.import_module("equipoise.evaluate")  # the package; equipoise.evaluate is the function
SIZES = (5, 15)  # defaults of scikit-learn and of equipoise
TURN = 20  # consecutive calls of each library: BLAS threads of the other keep spinning for about 20 ms


def clock(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def digits(runs: int, threads: int) -> list[list[str]]:
    from sklearn.manifold import trustworthiness

    X = common.load("digits").X
    X = X + 0.01 * np.random.RandomState(0).standard_normal(X.shape)
    Y = eq.TSNE(random_state=0, n_jobs=threads).fit_transform(X).astype(np.float64)
    rows = []
    for k in SIZES:
        calls = {
            "equipoise": lambda k=k: ev.trustworthiness(X, Y, k, n_jobs=threads),
            "scikit-learn": lambda k=k: trustworthiness(X, Y, n_neighbors=k),
        }
        found = {name: float(call()) for name, call in calls.items()}
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(runs):
            for name, call in calls.items():
                seconds[name] += [clock(call)[0] for _ in range(TURN)]
        ours = median(seconds["equipoise"])
        rows += [
            [
                str(k),
                name,
                f"{1000 * median(taken):.1f} ({1000 * min(taken):.1f}–{1000 * max(taken):.1f})",
                f"{median(taken) / ours:.1f}",
                f"{found[name]:.8f}",
            ]
            for name, taken in seconds.items()
        ]
    return rows


def large(n: int, threads: int) -> tuple[str, list[list[str]]]:
    data = common.load("mnist", n)
    X, labels = data.X, data.labels
    Y = np.ascontiguousarray(X[:, :2])

    @cache
    def hoods() -> ev.Neighborhoods:
        return ev.Neighborhoods(X, Y, 15, n_jobs=threads)

    calls: dict[str, Callable[[], Any]] = {
        "trustworthiness, k = 15": lambda: hoods().trustworthiness(15),
        "continuity, k = 15": lambda: hoods().continuity(15),
        "neighbours kept, k = 15": lambda: hoods().recall(15),
        "recall curve up to k = 200, at 200": lambda: ev.recall_curve(X, Y, n_jobs=threads),
        "preservation ratio, l, m = 2, 5": lambda: ev.preservation_ratio(X, Y, 2, 5, n_jobs=threads),
        "stress, scale-free": lambda: ev.stress(X, Y).scale_free,
        "Shepard correlation": lambda: ev.shepard(X, Y).correlation,
        "dilation, median": lambda: ev.distortions(X, Y).dilation.median,
        "triplet accuracy": lambda: ev.triplet_accuracy(X, Y),
        "centroid correlation": lambda: ev.centroid_correlation(X, Y, labels),
        "1-NN error": lambda: ev.one_nn_error(Y, labels),
        "10-NN accuracy": lambda: ev.knn_accuracy(Y, labels),
        "silhouette": lambda: ev.silhouette(Y, labels),
        "Davies-Bouldin index": lambda: ev.davies_bouldin(Y, labels),
        "Davies-Bouldin curve, 2 to 30 clusters, lowest": lambda: ev.davies_bouldin_curve(Y),
    }
    rows, total, near = [], 0.0, 0.0
    for name, call in calls.items():
        taken, value = clock(call)
        total += taken
        near += taken if len(rows) < 5 else 0.0
        error: float | None = getattr(value, "error", None)
        if isinstance(value, ev.RecallCurve):
            value, error = value.recall[-1], value.errors[-1]
        if isinstance(value, ev.DaviesBouldinCurve):
            value = value.index.min()
        rows.append([name, f"{taken:.2f}", f"{float(value):.4f}", f"{error:.4f}" if error else "–"])
    rows.append(["all local measures (the first five)", f"{near:.2f}", "", ""])
    rows.append(["all of the above", f"{total:.2f}", "", ""])
    return data.title, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large", type=int, default=70_000, help="number of MNIST images; 0 omits MNIST")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()

    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "scikit-learn"])
    lines = common.header("Measures of a map", f"python benchmarks/measures.py --threads {args.threads}", where)
    lines += ["## Trustworthiness of a t-SNE map of 1,797 digits", ""]
    lines += [f"Milliseconds: median and range of {args.runs} rounds of {TURN} calls each.", ""]
    columns = ["k", "", "ms", "ratio", "value"]
    lines += common.table(columns, digits(args.runs, args.threads))
    if args.large and (common.DATA / common.IMAGES["mnist"]).exists():
        title, rows = large(args.large, args.threads)
        lines += ["", f"## All measures: {title}", "", "The map is the first two principal components. One run.", ""]
        lines += common.table(["measure", "s", "value", "standard error of the sample"], rows)
        lines += ["", f"Peak memory of the process: {common.peak_memory():.0f} MB."]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()

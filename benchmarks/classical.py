"""Closed forms: PCA, classical MDS, Isomap, LLE and Laplacian eigenmaps, compared with scikit-learn.

    python benchmarks/classical.py [--runs 7] [--threads 2] [--out benchmarks/results/classical.md]

Both libraries run in one process: one untimed fit each, then timed fits in alternation; the page shows medians. R² is
the Procrustes R² between the two maps. Digits get noise of standard deviation 0.01: with integer pixels many neighbours
are tied, and each library would break ties differently.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np

DATA = ("digits", "S-curve", "Swiss roll")
POINTS = 2000  # in each of the two surfaces


def points(name: str) -> np.ndarray:
    from sklearn import datasets

    if name == "digits":
        X = datasets.load_digits().data
        return X + 0.01 * np.random.RandomState(0).standard_normal(X.shape)
    make = datasets.make_s_curve if name == "S-curve" else datasets.make_swiss_roll
    return make(POINTS, random_state=0)[0]


def pairs(threads: int) -> dict[str, tuple[Any, Any]]:
    """Return equipoise's and scikit-learn's estimator of each method, with the same settings."""
    from sklearn import decomposition, manifold

    import equipoise as eq

    k = 12
    found = {
        "PCA": (eq.PCA(), decomposition.PCA(2)),
        "ClassicalMDS": (eq.ClassicalMDS(metric="manhattan"), None),
        "Isomap": (eq.Isomap(n_neighbors=k), manifold.Isomap(n_neighbors=k, n_jobs=threads)),
        "LLE": (eq.LLE(n_neighbors=k), manifold.LocallyLinearEmbedding(n_neighbors=k, n_jobs=threads)),
        "LaplacianEigenmaps": (  # scikit-learn counts a point among its own neighbours here
            eq.LaplacianEigenmaps(n_neighbors=k),
            manifold.SpectralEmbedding(affinity="nearest_neighbors", n_neighbors=k + 1, random_state=0, n_jobs=threads),
        ),
    }
    if hasattr(manifold, "ClassicalMDS"):  # scikit-learn 1.8 or later
        found["ClassicalMDS"] = (found["ClassicalMDS"][0], manifold.ClassicalMDS(2, metric="manhattan"))
    else:
        del found["ClassicalMDS"]
    return {name: (ours.set_params(n_jobs=threads), theirs) for name, (ours, theirs) in found.items()}


def child(request: dict[str, Any]) -> dict[str, Any]:
    from scipy.spatial import procrustes

    X = points(request["data"])
    result = {}
    for name, both in pairs(request["threads"]).items():
        maps = [method.fit_transform(X) for method in both]
        seconds: list[list[float]] = [[], []]
        for _ in range(request["runs"]):
            for spent, method in zip(seconds, both, strict=True):
                start = time.perf_counter()
                method.fit_transform(X)
                spent.append(time.perf_counter() - start)
        result[name] = {"r2": 1 - procrustes(*maps)[2], "ours": seconds[0], "theirs": seconds[1]}
    return result


def timing(seconds: list[float]) -> str:
    return f"{1e3 * median(seconds):.1f} ({1e3 * min(seconds):.1f}–{1e3 * max(seconds):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/classical.md"))
    parser.add_argument("--child", type=Path, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        common.answer(args.child, child(json.loads(args.child.read_text())))
        return

    where = common.machine(args.threads, ["equipoise", "scikit-learn", "numpy", "scipy", "faiss-cpu"])
    rows = []
    for name in DATA:
        answered = common.run_child(
            "classical.py", {"data": name, "runs": args.runs, "threads": args.threads}, args.threads
        )
        if "failed" in answered:
            raise SystemExit(f"{name}: {answered['failed']}")
        n, D = points(name).shape
        for method, got in answered.items():
            ratio = median(got["theirs"]) / median(got["ours"])
            row = [f"{name}, {n:,} × {D}", method, timing(got["ours"]), timing(got["theirs"]), f"{ratio:.1f}"]
            rows.append([*row, f"{got['r2']:.6f}"])
    command = f"python benchmarks/classical.py --runs {args.runs} --threads {args.threads}"
    columns = ["data", "method", "equipoise, ms", "scikit-learn, ms", "times as fast", "Procrustes R²"]
    lines = common.header("Closed forms, equipoise and scikit-learn", command, where)
    lines += [f"Median (range) of {args.runs} fits each, in alternation, after one untimed fit.", ""]
    common.write(lines + common.table(columns, rows), args.out)


if __name__ == "__main__":
    main()

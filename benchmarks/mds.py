"""Metric MDS compared with scikit-learn, and on large data: time and raw stress.

    python benchmarks/mds.py [--large 50000] [--threads 2] [--out benchmarks/results/mds.md]

On the digits both libraries get the same table, in alternation. scikit-learn's MDS has n_init=1 and max_iter=300, once
with a random and once with a classical start, and its defaults otherwise. All maps are scored alike: Σ_{i<j} (d − δ)²
in float64 from pdist. MNIST, on 50 principal components, is scored with engine="recomputed".
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from statistics import median

import common
import numpy as np
from scipy.spatial.distance import pdist

import equipoise as eq


def rivals(seed: int, threads: int) -> dict[str, object]:
    from sklearn.manifold import MDS as ScikitMDS

    return {
        "equipoise": eq.MDS(random_state=seed, n_jobs=threads),
        "equipoise, random start": eq.MDS(init="random", random_state=seed, n_jobs=threads),
        "equipoise, SMACOF": eq.MDS(solver="smacof", random_state=seed, n_jobs=threads),
        "scikit-learn, random start": ScikitMDS(
            n_init=1, init="random", max_iter=300, random_state=seed, n_jobs=threads
        ),
        "scikit-learn, classical start": ScikitMDS(
            n_init=1, init="classical_mds", max_iter=300, random_state=seed, n_jobs=threads
        ),
    }


def fit(method: object, X: np.ndarray) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Y = method.fit_transform(X)  # type: ignore[attr-defined]
    return time.perf_counter() - start, Y


def digits(runs: int, threads: int) -> list[list[str]]:
    X = common.load("digits").X
    delta = pdist(X)
    seconds: dict[str, list[float]] = {}
    losses: dict[str, list[float]] = {}
    iterations: dict[str, int] = {}
    for run in range(runs):
        for name, method in rivals(run, threads).items():
            taken, Y = fit(method, X)
            seconds.setdefault(name, []).append(taken)
            losses.setdefault(name, []).append(float(((pdist(np.asarray(Y, dtype=np.float64)) - delta) ** 2).sum()))
            iterations[name] = int(method.n_iter_)  # type: ignore[attr-defined]
    ours = median(seconds["equipoise"])
    return [
        [
            name,
            f"{median(t):.2f} ({min(t):.2f}–{max(t):.2f})",
            f"{median(t) / ours:.1f}",
            f"{median(losses[name]) / 1e6:.1f} ({min(losses[name]) / 1e6:.1f}–{max(losses[name]) / 1e6:.1f})",
            str(iterations[name]),
        ]
        for name, t in seconds.items()
    ]


def large(n: int, threads: int) -> list[list[str]]:
    X = common.load("mnist", n).X
    exact = eq.MDS(engine="recomputed", n_jobs=threads, init="pca", random_state=0).problem(X)
    rows = [["principal components, scaled", "", "", f"{exact.loss(exact.Y0.astype(np.float32)) / 1e6:.0f}", ""]]
    method = eq.MDS(n_jobs=threads, random_state=0)
    taken, Y = fit(method, X)
    rows.append(
        [
            f"equipoise, engine {method.engine_}",
            f"{taken:.1f}",
            f"{common.peak_memory():.0f}",
            f"{exact.loss(Y) / 1e6:.0f}",
            f"{method.loss_ / 1e6:.0f} after {method.n_iter_}",
        ]
    )
    finer = eq.MDS(init=Y, engine="recomputed", n_iter=10, n_jobs=threads)
    more, Y = fit(finer, X)
    rows.append(
        [
            "and 10 iterations with engine recomputed",
            f"{taken + more:.1f}",
            f"{common.peak_memory():.0f}",
            f"{exact.loss(Y) / 1e6:.0f}",
            "",
        ]
    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--large", type=int, default=50_000, help="number of MNIST images; 0 omits MNIST")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()

    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "scikit-learn"])
    eq.MDS(n_iter=2).fit(np.random.RandomState(0).standard_normal((50, 3)))  # so that imports are not timed
    command = f"python benchmarks/mds.py --runs {args.runs} --large {args.large} --threads {args.threads}"
    lines = common.header("Metric MDS", command, where)
    columns = [
        "digits, 1,797 × 64",
        "seconds, median (range)",
        "ratio",
        "stress / 10⁶, median (range)",
        "iterations, last run",
    ]
    lines += common.table(columns, digits(args.runs, args.threads))
    if args.large:
        try:
            rows = large(args.large, args.threads)
        except FileNotFoundError as error:
            rows = [[f"skipped: {error}", "", "", "", ""]]
        columns = [f"MNIST, {args.large:,} × 50", "seconds", "peak memory, MB", "stress / 10⁶", "estimate / 10⁶"]
        lines += ["", *common.table(columns, rows)]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()

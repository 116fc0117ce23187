"""Double-kernel LLE on all of MNIST, compared with t-SNE.

    python benchmarks/double.py [--data mnist] [--runs 3] [--threads 2] [--out benchmarks/results/double.md]

Both embed the 50 principal components of the 70,000 images with their defaults, in alternation. The times include the
neighbour search, the weights or affinities, the initial map and 300 iterations. A small untimed fit of each runs first.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np
from scipy.spatial import cKDTree
from score import one_nn_error

import equipoise as eq
from equipoise.views.plot import plot

METHODS = {"t-SNE": eq.TSNE, "DK-LLE": eq.DKLLE}
VOTERS = 10


def accuracy(Y: np.ndarray, labels: np.ndarray, threads: int) -> float:
    """Return the leave-one-out accuracy of a 10-nearest-neighbour vote; ties go to the lowest class."""
    Y = Y.astype(np.float64)
    near = cKDTree(Y).query(Y, VOTERS + 1, workers=threads)[1][:, 1:]
    votes = np.zeros((len(Y), int(labels.max()) + 1), np.int64)
    for column in near.T:
        votes[np.arange(len(Y)), labels[column]] += 1
    return float((votes.argmax(axis=1) == labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=list(common.IMAGES), default="mnist")
    parser.add_argument("--subset", type=int, default=None)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/double.md"))
    args = parser.parse_args()
    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "faiss-cpu"])
    try:
        data = common.load(args.data, args.subset)
    except FileNotFoundError as error:
        raise SystemExit(f"skipped: {error}") from None
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    fitted: dict[str, Any] = {}
    for Method in METHODS.values():
        Method(random_state=0, n_iter=10, n_jobs=args.threads).fit(data.X[:2000])
    for _ in range(args.runs):
        for name, Method in METHODS.items():
            start = time.perf_counter()
            fitted[name] = Method(random_state=0, n_jobs=args.threads).fit(data.X)
            seconds[name].append(time.perf_counter() - start)
    rows = []
    for name, method in fitted.items():
        Y, times = method.embedding_, seconds[name]
        P = method.affinities_
        rows.append(
            [
                name,
                f"{median(times):.1f} s ({min(times):.1f}–{max(times):.1f})",
                f"{median(times) / median(seconds['t-SNE']):.2f}",
                f"{P.nnz / len(Y):.0f}",
                str(method.n_iter_),
                f"{method.loss_:.4g}",
                f"{accuracy(Y, data.labels, args.threads):.4f}",
                f"{one_nn_error(Y, data.labels, args.threads):.2%}",
            ]
        )
    columns = ["method", f"time, median of {args.runs} (range)", "over t-SNE", "entries a row", "iterations", "loss"]
    columns += [f"{VOTERS}-NN accuracy", "1-NN error"]
    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = f"python benchmarks/double.py --data {args.data}{subset} --runs {args.runs} --threads {args.threads}"
    lines = common.header(f"Double-kernel LLE: {data.title}", command, where) + common.table(columns, rows)
    stem = args.out.with_suffix("")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    figure = plot(fitted["DK-LLE"], data.labels, names=data.classes or None, title=f"DK-LLE of {data.title}")
    figure.savefig(f"{stem}.png")
    common.write([*lines, "", f"![The map]({stem.name}.png)"], args.out)


if __name__ == "__main__":
    main()

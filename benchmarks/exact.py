"""TSNE(engine="exact") compared with scikit-learn's TSNE(method="exact"): time, and KL on the same P.

    python benchmarks/exact.py [--runs 3] [--out benchmarks/results/exact.md]

Both embed the digits (1,797 × 64) at perplexity 30, otherwise with their defaults, in alternation. Both maps are scored
with the float64 reference engine on one dense P.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE as SklearnTSNE

import equipoise as eq
from equipoise.evaluate import one_nn_error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()

    X, labels = load_digits(return_X_y=True)
    truth = eq.TSNE(perplexity=30, engine="reference", random_state=0).problem(X)
    rivals = {
        "equipoise, exact, 2 threads": lambda: eq.TSNE(perplexity=30, engine="exact", n_jobs=2, random_state=0),
        "scikit-learn, exact": lambda: SklearnTSNE(perplexity=30, method="exact", random_state=0, n_jobs=2),
    }
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    score: dict[str, tuple[float, float]] = {}
    for run in range(args.runs):
        for name, make in rivals.items():
            start = time.perf_counter()
            Y = make().fit_transform(X)
            seconds[name].append(time.perf_counter() - start)
            score[name] = (truth.loss(np.asarray(Y, dtype=np.float64)), one_nn_error(Y, labels))
            print(f"run {run + 1}: {name}: {seconds[name][-1]:.2f} s, KL {score[name][0]:.4f}", flush=True)

    ours, theirs = (statistics.median(seconds[name]) for name in rivals)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    lines = [
        "# Exact t-SNE on digits (1,797 × 64), perplexity 30, defaults otherwise",
        "",
        f"Command: `python benchmarks/exact.py --runs {args.runs}`; medians; commit {commit or 'unknown'}.",
        f"Machine: {os.cpu_count()} cores, {platform.machine()}; Python {platform.python_version()},"
        f" NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}.",
        "",
        "| | seconds, median (all) | KL on the same P | 1-NN error |",
        "|---|---|---|---|",
        *(
            f"| {name} | {statistics.median(t):.2f} ({', '.join(f'{s:.2f}' for s in t)}) | {score[name][0]:.4f}"
            f" | {score[name][1]:.2%} |"
            for name, t in seconds.items()
        ),
        "",
        f"Ratio of medians: **{theirs / ours:.1f}×**.",
    ]
    print("\n".join(lines))
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

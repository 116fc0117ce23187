"""Placing new points in a finished map: time for one and for ten thousand points, and their 1-NN error.

    python benchmarks/transform.py [--data mnist] [--threads 2] [--out benchmarks/results/transform.md]

t-SNE is fitted to the 60,000 training images (their 50 principal components) and places the 10,000 test images. It is
timed a second time when fitted to all 70,000 images; the new points are then the test images with noise added.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median

import common
import numpy as np
from scipy.spatial import cKDTree
from score import one_nn_error

import equipoise as eq

TRAINING = 60_000
SINGLE = 20  # points placed one at a time
NOISE = 0.1  # times the standard deviation of the data, added to points that were also fitted


def split(name: str, subset: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X and classes of the training and the test images, on the principal components of the training images."""
    images, labels = common.read(name)
    m, m_new = (TRAINING, len(images) - TRAINING) if subset is None else (subset, subset // 6)
    rng = np.random.RandomState(0)
    train = np.sort(rng.permutation(TRAINING)[:m])
    test = TRAINING + np.sort(rng.permutation(len(images) - TRAINING)[:m_new])
    project = common.principal_components(images[train] / 255.0)
    X, X_new = (np.ascontiguousarray(project(images[rows] / 255.0)) for rows in (train, test))
    return X, labels[train].astype(np.int64), X_new, labels[test].astype(np.int64)


class Times:
    """Seconds to fit X, and to place one new point, further ones one at a time, and all of them."""

    def __init__(self, X: np.ndarray, X_new: np.ndarray, threads: int):
        self.n, self.many_n = len(X), len(X_new)
        self.method = eq.TSNE(perplexity=30, random_state=0, n_jobs=threads)
        start = time.perf_counter()
        self.Y = self.method.fit_transform(X)
        self.fit = time.perf_counter() - start
        self.first, _ = seconds_for(self.method, X_new[:1])  # builds the index and the field of the map
        alone = [seconds_for(self.method, X_new[i : i + 1]) for i in range(SINGLE)]
        self.many, self.Y_new = seconds_for(self.method, X_new)
        self.singles = sorted(seconds for seconds, _ in alone)
        self.apart = max(float(np.abs(y - self.Y_new[i]).max()) for i, (_, y) in enumerate(alone))

    def row(self) -> list[str]:
        low, middle, high = self.singles[0], median(self.singles), self.singles[-1]
        return [
            f"{self.n:,}",
            f"{self.fit:.1f} s",
            f"{1e3 * self.first:.0f} ms",
            f"{1e3 * middle:.1f} ms ({1e3 * low:.1f}–{1e3 * high:.1f})",
            f"{self.many_n:,} in {self.many:.2f} s",
            f"{self.apart:.2g}",
        ]


def seconds_for(method: eq.TSNE, X: np.ndarray) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    Y = method.transform(X)
    return time.perf_counter() - start, Y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=list(common.IMAGES), default="mnist")
    parser.add_argument("--subset", type=int, default=None, help="number of training images; a sixth as many new ones")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/transform.md"))
    args = parser.parse_args()

    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "faiss-cpu"])
    try:
        X, labels, X_new, labels_new = split(args.data, args.subset)
    except FileNotFoundError as error:
        raise SystemExit(f"skipped: {error}") from None
    held_out = Times(X, X_new, args.threads)
    noise = NOISE * X.std() * np.random.RandomState(0).standard_normal(X_new.shape)
    whole = Times(np.concatenate([X, X_new]), X_new + noise, args.threads)
    nearest = cKDTree(held_out.Y.astype(np.float64)).query(held_out.Y_new.astype(np.float64), workers=args.threads)[1]
    fitted_error = one_nn_error(held_out.Y, labels, args.threads)
    new_error = float((labels[nearest] != labels_new).mean())

    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = f"python benchmarks/transform.py --data {args.data}{subset} --threads {args.threads}"
    columns = ["fitted", "fit", "first transform, 1 point", f"1 point, median of {SINGLE} (range)", "many"]
    columns += ["largest difference between a point placed alone and among all"]
    title = f"New points in a t-SNE map: {args.data}"
    lines = [
        *common.header(title, command, where),
        *common.table(columns, [held_out.row(), whole.row()]),
        "",
        f"1-NN error of the {held_out.n:,} fitted points, leave-one-out: {fitted_error:.2%}; of the"
        f" {held_out.many_n:,} new points, by the nearest fitted one: {new_error:.2%}.",
        f"With all {whole.n:,} points fitted, the new ones are the test images with normal noise of {NOISE:g} times",
        "the standard deviation of the data.",
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()

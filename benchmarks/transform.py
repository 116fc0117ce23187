"""New points in a finished map: time for one and for ten thousand, and how well they fall among their own class.

    python benchmarks/transform.py [--data mnist] [--threads 2] [--out benchmarks/results/transform.md]

t-SNE is fitted to the 60,000 training images (50 principal components of these) and places the 10,000 test images.
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
SINGLE = 20  # points placed one by one


def split(name: str, subset: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X and classes of the training and of the test images, on the components of the training images."""
    images, labels = common.read(name)
    m, held = (TRAINING, len(images) - TRAINING) if subset is None else (subset, subset // 6)
    rng = np.random.RandomState(0)
    train = np.sort(rng.permutation(TRAINING)[:m])
    test = TRAINING + np.sort(rng.permutation(len(images) - TRAINING)[:held])
    project = common.principal_components(images[train] / 255.0)
    X, X_new = (np.ascontiguousarray(project(images[rows] / 255.0)) for rows in (train, test))
    return X, labels[train].astype(np.int64), X_new, labels[test].astype(np.int64)


def seconds_for(method: eq.TSNE, X: np.ndarray) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    Y = method.transform(X)
    return time.perf_counter() - start, Y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=list(common.IMAGES), default="mnist")
    parser.add_argument("--subset", type=int, default=None, help="so many training images, and a sixth as many others")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/transform.md"))
    args = parser.parse_args()

    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "faiss-cpu"])
    try:
        X, labels, X_new, labels_new = split(args.data, args.subset)
    except FileNotFoundError as error:
        raise SystemExit(f"skipped: {error}") from None
    method = eq.TSNE(perplexity=30, random_state=0, n_jobs=args.threads)
    start = time.perf_counter()
    Y = method.fit_transform(X)
    fitted = time.perf_counter() - start

    first, _ = seconds_for(method, X_new[:1])  # builds the index and the field of the map
    singles = [seconds_for(method, X_new[i : i + 1]) for i in range(SINGLE)]
    many, Y_new = seconds_for(method, X_new)
    apart = max(float(np.abs(alone[1] - Y_new[i]).max()) for i, alone in enumerate(singles))
    nearest = cKDTree(Y.astype(np.float64)).query(Y_new.astype(np.float64), workers=args.threads)[1]

    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = f"python benchmarks/transform.py --data {args.data}{subset} --threads {args.threads}"
    rows = [
        [f"fit, {len(X):,} points", f"{fitted:.1f} s"],
        ["first transform, 1 point", f"{1e3 * first:.0f} ms"],
        [
            f"1 point, median of {SINGLE} (range)",
            f"{1e3 * median(t for t, _ in singles):.1f} ms"
            f" ({1e3 * min(t for t, _ in singles):.1f}–{1e3 * max(t for t, _ in singles):.1f})",
        ],
        [f"{len(X_new):,} points", f"{many:.2f} s"],
        ["largest difference between a point placed alone and among all", f"{apart:.2g}"],
        ["1-NN error of the fitted points, leave-one-out", f"{one_nn_error(Y, labels, args.threads):.2%}"],
        ["1-NN error of the new points, by the nearest fitted one", f"{(labels[nearest] != labels_new).mean():.2%}"],
    ]
    title = f"New points in a t-SNE map: {args.data}"
    common.write(common.header(title, command, where) + common.table(["", ""], rows), args.out)


if __name__ == "__main__":
    main()

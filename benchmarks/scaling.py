"""Time and memory of t-SNE as functions of n: Gaussian mixtures in 50 dimensions, each size in its own process.

python benchmarks/scaling.py [--n 100000 300000 1000000] [--threads 2] [--out benchmarks/results/scaling.md]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import show, timed, total

DIMENSION = 50
COMPONENTS = 30
SEPARATION = 1.5  # standard deviation of the centres, per coordinate; that of each Gaussian is 1


def mixture(n: int, decay: float) -> tuple[np.ndarray, np.ndarray]:
    """Return n points of a mixture of equal Gaussians, float32, and the component of each.

    Axis j = 1, 2, … is scaled by j^(−decay). With 0 the Gaussians are isotropic, the hardest case for neighbour search;
    with 0.5 variances decrease like those of principal components.
    """
    rng = np.random.default_rng(0)
    centres = SEPARATION * rng.standard_normal((COMPONENTS, DIMENSION), dtype=np.float32)
    labels = rng.integers(COMPONENTS, size=n)
    X = rng.standard_normal((n, DIMENSION), dtype=np.float32)
    for start in range(0, n, 65536):  # in blocks, to avoid a second array of the size of X
        rows = slice(start, start + 65536)
        X[rows] += centres[labels[rows]]
        X[rows] *= np.arange(1, DIMENSION + 1, dtype=np.float32) ** -decay
    return X, labels


def child(file: Path) -> None:
    import faiss  # noqa: F401  imports are not timed

    import equipoise as eq
    from equipoise.inputs import Table

    request = json.loads(file.read_text())
    X, labels = mixture(request["n"], request["decay"])
    before = common.peak_memory()
    start = time.perf_counter()
    with timed(Table, "neighbors") as search:
        problem = eq.TSNE(perplexity=30, random_state=0, n_jobs=request["threads"]).problem(X)
    built = time.perf_counter()
    Y = problem.optimize()
    end = time.perf_counter()
    peak = common.peak_memory()

    from score import one_nn_error

    record = {
        "neighbors_s": total(search),
        "build_s": built - start,
        "optimise_s": end - built,
        "total_s": end - start,
        "before_mb": before,
        "peak_mb": peak,
        "table_mb": X.nbytes / 1e6,
        "estimate_mb": eq.estimate_memory(*X.shape, perplexity=30).peak / 1e6,
        "recall": problem.knn_recall,
        "loss": float(problem.loss_curve[-1, 1]),
        "n_iter": problem.n_iter,
        "one_nn_error": one_nn_error(Y, labels, request["threads"]),
    }
    common.answer(file, record)


COLUMNS = [
    "n", "neighbours, s", "build, s", "optimise, s", "ms per iteration", "total, s", "total ÷ first",
    "peak memory, MB (of it the fit)", "peak without X, MB", "estimated, MB", "recall of the search", "loss",
    "1-NN error",
]  # fmt: skip


def notes(decay: float) -> list[str]:
    """Return the notes below the table: what was run, and the meaning of the columns."""
    return f"""
Equal mixtures of {COMPONENTS} Gaussians in {DIMENSION} dimensions, of standard deviation 1 around centres of standard
deviation {SEPARATION} per coordinate; axis j = 1, 2, … then scaled by j^(−{decay:g}). X in float32;
`TSNE(perplexity=30)` with defaults; each n in a fresh process. **Build** is the neighbour search, the affinities and
the initial map. **Peak memory** is the largest resident size of the process; in brackets, the part added by the fit to
imports and data. **Estimated** is `estimate_memory(n, {DIMENSION}, perplexity=30)`, an upper bound that includes
libraries but not the caller's X; compare it with the peak without X. The recall is the one reported by the fit, from a
sample; the loss is on the neighbours found. The 1-NN error is that of the mixture component, leave-one-out in the map.
""".strip().splitlines()


def row(n: int, record: dict[str, Any], first: dict[str, Any]) -> list[str]:
    if "failed" in record:
        return [f"{n:,}", f"failed: {record['failed']}", *[""] * (len(COLUMNS) - 2)]
    return [
        f"{n:,}",
        *(show(record[key], ".1f") for key in ("neighbors_s", "build_s", "optimise_s")),
        f"{1e3 * record['optimise_s'] / record['n_iter']:.1f}",
        f"{record['total_s']:.1f}",
        "–" if "failed" in first else f"{record['total_s'] / first['total_s']:.2f}",
        f"{record['peak_mb']:.0f} ({record['peak_mb'] - record['before_mb']:.0f})",
        f"{record['peak_mb'] - record['table_mb']:.0f}",
        f"{record['estimate_mb']:.0f}",
        f"{record['recall']:.3f}",
        f"{record['loss']:.3f} after {record['n_iter']}",
        f"{record['one_nn_error']:.2%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--decay", type=float, default=0.0, help="decay of the scale over the axes (0: isotropic)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scaling.md"))
    parser.add_argument("--child", type=Path, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        child(args.child)
        return

    sizes = " ".join(map(str, args.n))
    command = f"python benchmarks/scaling.py --n {sizes} --decay {args.decay:g} --threads {args.threads}"
    page = common.header(
        f"t-SNE of Gaussian mixtures in {DIMENSION} dimensions",
        command,
        common.machine(args.threads, ["equipoise", "numpy", "scipy", "faiss-cpu"]),
    )
    rows, first = [], None
    for n in args.n:
        request = {"n": n, "decay": args.decay, "threads": args.threads}
        record = common.run_child("scaling.py", request, args.threads)
        first = record if first is None else first
        rows.append(row(n, record, first))
        print(" | ".join(rows[-1]), flush=True)
        lines = [*page, *common.table(COLUMNS, rows), "", *notes(args.decay)]
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""How large the error of the mesh is between two checks of the tolerance, at every iteration of t-SNE.

    python benchmarks/tolerance.py [--n 5000 20000] [--n-iter 250] [--seeds 3] [--threads 2]
                                   [--out benchmarks/results/tolerance.md]

The data are mixtures of 30 normal clusters in 50 dimensions. The error is that of the force on 1,000 random points,
drawn independently of those that the engine checks itself, relative to direct sums.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import common
import numpy as np

TOL = 0.01
POINTS = 1000  # at which the error is measured


def mixture(n: int, seed: int) -> np.ndarray:
    """Return n points of a mixture of 30 normal clusters."""
    rng = np.random.RandomState(seed)
    centres = 2 * rng.standard_normal((30, 50))
    return centres[rng.randint(30, size=n)] + rng.standard_normal((n, 50))


def error(engine: Any, kernel: Any, U: np.ndarray, points: np.ndarray) -> float | None:
    """Return the relative error of the force at some points; None if the engine checks the tolerance first."""
    from equipoise.engines.mesh.plan import rungs_of

    source = engine._source(U, None)
    rungs = rungs_of(source.high - source.low, kernel.length, engine.RUNGS)
    record = engine._record(kernel, False, U.shape[1])
    if record.fields >= engine.CHECK - 1 or engine._check_due(record, rungs, record.rungs):
        return None
    targets = U[points]
    truth = engine._direct(kernel, source)(targets)[1]
    found = engine._planned(kernel, len(U), rungs, record).solve(source, engine.n_threads)(targets)[1]
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def errors_of_run(n: int, seed: int, args: argparse.Namespace) -> list[float]:
    """Return the errors at the iterations of a run at which the engine does not check the tolerance."""
    import equipoise as eq

    method = eq.TSNE(random_state=seed, n_jobs=args.threads, n_iter=args.n_iter, tol=TOL, engine="grid")
    problem = method.problem(mixture(n, seed))
    descent, engine, kernel = problem.descent(), problem.engine, problem.objective.kernel
    points = np.sort(np.random.RandomState(seed + 1).permutation(n)[:POINTS])
    found = []
    for iteration in range(1, args.n_iter):
        descent.run(iteration)
        found.append(error(engine, kernel, descent.state.U, points))
    return [value for value in found if value is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[5000, 20000])
    parser.add_argument("--n-iter", type=int, default=250)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/tolerance.md"))
    args = parser.parse_args()
    rows = []
    for n in args.n:
        for seed in range(args.seeds):
            errors = np.array(errors_of_run(n, seed, args)) / TOL
            counts = [f"{len(errors)}", f"{(errors > 1).sum()}"]
            rows.append([f"{n:,}", f"{seed}", *counts, f"{np.median(errors):.2f}", f"{errors.max():.2f}"])
    sizes = " ".join(map(str, args.n))
    command = f"python benchmarks/tolerance.py --n {sizes} --n-iter {args.n_iter} --seeds {args.seeds}"
    lines = common.header("The tolerance between checks", command, common.machine(args.threads, ["equipoise", "numpy"]))
    lines += [
        f"t-SNE with tol={TOL:g} on mixtures of 30 clusters: the error of the force on {POINTS:,} random points at",
        f"{args.n_iter - 1} iterations, as a multiple of tol. Fields with which the engine checks are left out.",
        "",
        *common.table(["points", "seed", "fields between checks", "above tol", "median", "maximum"], rows),
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()

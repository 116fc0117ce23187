"""Measure the constants of engine="auto" and of the mesh: the cost of an iteration, a node and a near pair.

    python benchmarks/crossover.py [--n 300 600 …] [--d 1 2 3 5] [--rounds 3] [--out benchmarks/results/crossover.md]

*Crossover*: t-SNE of the same rows over all pairs (`exact`) and in linear time (`grid`, or `sampled` beyond three
dimensions), in alternation, for increasing n. The n at which both take equally long is the value of `CROSSOVER` in
engines/choose.py and of `HIGH_CROSSOVER` in engines/sampled.py. *Costs*: on finished maps and one thread, nanoseconds
per mesh node and per near pair, and the number of near pairs relative to a uniform map. They are the values of `NODE`,
`PAIR` and `CLUMP` in engines/mesh/plan.py.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median

import common
import numpy as np
from common import show, timed
from scaling import mixture
from scipy.spatial import cKDTree

import equipoise as eq
from equipoise import _core
from equipoise.engines.choose import CROSSOVER
from equipoise.engines.mesh import plan
from equipoise.engines.mesh.mesh_engine import Grid
from equipoise.engines.sampled import HIGH_CROSSOVER
from equipoise.kernels import Kernel, RegularizedPowerLaw, StudentT

DECAY = 0.5  # of the mixture: variances decrease like those of principal components
BALL = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}
ENDLESS = eq.Momentum(min_loss_change=0.0, min_grad_norm=0.0)


def rows_of(name: str, n: int) -> np.ndarray | None:
    """Return n rows of the digits or of a mixture; None if the digits have fewer."""
    if name == "mixture":
        return mixture(n, DECAY)[0].astype(np.float64)
    data = common.load("digits", n)
    return data.X if len(data.X) == n else None


def linear(d: int) -> str:
    """Return the linear-time engine that `exact` is compared with in d dimensions."""
    return "grid" if d <= 3 else "sampled"


def per_iteration(X: np.ndarray, d: int, n_iter: int, threads: int, rounds: int) -> dict[str, float]:
    """Return seconds per iteration of whole runs of each engine: medians over the rounds, engines in alternation."""
    problems = {
        name: eq.TSNE(d, engine=name, random_state=0, n_jobs=threads, optimizer=ENDLESS).problem(X)
        for name in ("exact", linear(d))
    }
    seconds: dict[str, list[float]] = {name: [] for name in problems}
    for round_ in range(-1, rounds):  # the first round is a warm-up
        for name, problem in problems.items():
            start = time.perf_counter()
            problem.optimize(n_iter=n_iter)
            if round_ >= 0:
                seconds[name].append((time.perf_counter() - start) / n_iter)
    return {name: median(values) for name, values in seconds.items()}


def crossing(sizes: list[int], ratios: list[float]) -> float | None:
    """Return the n from which the ratio of times stays above 1, by log-log interpolation; None if outside the range."""
    below = [i for i, ratio in enumerate(ratios) if ratio <= 1]
    if not below or below[-1] == len(ratios) - 1:
        return None
    i = below[-1]
    a, b = np.log(ratios[i : i + 2])
    return float(np.exp(np.interp(0.0, [a, b], np.log(sizes[i : i + 2]))))


def crossover(d: int, sizes: list[int], n_iter: int, threads: int, rounds: int) -> list[str]:
    """Return the section of the page for one dimension."""
    rows, equal = [], []
    for name in ("digits", "mixture"):
        tried, ratios = [], []
        for n in sizes:
            X = rows_of(name, n)
            if X is None:
                continue
            exact, other = per_iteration(X, d, n_iter, threads, rounds).values()
            tried.append(n)
            ratios.append(exact / other)
            rows.append([name, f"{n:,}", f"{1e3 * exact:.3f}", f"{1e3 * other:.3f}", f"{exact / other:.2f}"])
            print(f"d = {d}: {' | '.join(rows[-1])}", flush=True)
        equal.append(f"{name} {show(crossing(tried, ratios), ',.0f')}")
    columns = ["data", "n", "exact, ms per iteration", f"{linear(d)}, ms per iteration", "ratio"]
    used = CROSSOVER.get(d, HIGH_CROSSOVER)
    ends = f"Equally fast at n: {', '.join(equal)}. `auto` switches at {used:,}."
    return ["", f"## d = {d}", "", *common.table(columns, rows), "", ends]


def costs(Y: np.ndarray, kernel: Kernel, tol: float, rounds: int) -> dict[str, float | None]:
    """Return the cost of a field on the mesh of Y, on one thread."""
    engine = Grid(1, tol)
    engine.field(Y, kernel)  # builds the transform and the tables
    transform = next(reversed(engine._transforms.values()))
    with timed(_core, "convolve") as convolve, timed(_core, "near") as near:
        for _ in range(rounds):
            engine.field(Y, kernel)
    nodes = float(np.prod(transform.size))
    result: dict[str, float | None] = {"nodes": nodes, "node_ns": 1e9 * median(convolve) / nodes}
    if transform.radius > 0:
        n, d = Y.shape
        tree = cKDTree(Y.astype(np.float64))
        pairs = float(tree.count_neighbors(tree, transform.radius) - n)
        uniform = n * n * BALL[d] * transform.radius**d / float(np.ptp(Y.astype(np.float64), axis=0).prod())
        result |= {"pairs": pairs, "pair_ns": 1e9 * median(near) / pairs, "clump": pairs / uniform}
    return result


def cost_section(dimensions: list[int], n: int, threads: int, rounds: int) -> list[str]:
    """Return the section on costs, for t-SNE's kernel and for one with a cusp, which always has a near field."""
    rows = []
    for d in dimensions:
        for name, X in (("digits", rows_of("digits", min(n, 1797))), ("mixture", rows_of("mixture", n))):
            Y = eq.TSNE(d, engine="grid", random_state=0, n_jobs=threads).fit_transform(X)
            for kernel in (StudentT(), RegularizedPowerLaw(1.0, 1.0)):
                cost = costs(Y, kernel, eq.TSNE().tol, rounds)
                forms = {"nodes": ",.0f", "node_ns": ".1f", "pairs": ",.0f", "pair_ns": ".1f", "clump": ".1f"}
                numbers = [show(cost.get(key), form) for key, form in forms.items()]
                rows.append([f"{name}, {len(Y):,}", str(d), f"`{kernel!r}`", *numbers])
                print(" | ".join(rows[-1]), flush=True)
    columns = ["map", "d", "kernel", "nodes", "ns per node", "near pairs", "ns per pair", "over a uniform map"]
    used = f"In use: `NODE` = {plan.NODE:g}, `PAIR` = {plan.PAIR:g}, `CLUMP` = {plan.CLUMP:g}."
    return ["", "## Costs on one thread", "", *common.table(columns, rows), "", used]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[300, 450, 700, 1000, 1500, 2200, 3300, 5000])
    parser.add_argument("--d", type=int, nargs="+", default=[1, 2, 3, 5])
    parser.add_argument("--points", type=int, default=20_000, help="size of the mixture for the costs")
    parser.add_argument("--n-iter", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/crossover.md"))
    args = parser.parse_args()

    sizes = sorted(args.n)
    command = (
        f"python benchmarks/crossover.py --n {' '.join(map(str, sizes))} --d {' '.join(map(str, args.d))}"
        f" --points {args.points} --n-iter {args.n_iter} --rounds {args.rounds} --threads {args.threads}"
    )
    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "faiss-cpu"])
    lines = common.header("All pairs or linear time", command, where)
    lines += [
        f"t-SNE of digits (random rows) and of the mixture of benchmarks/scaling.py with decay {DECAY:g}. The time per",
        f"iteration is the mean over a run of {args.n_iter} iterations, without the affinities; medians over",
        f"{args.rounds} runs, engines in alternation.",
    ]
    for d in args.d:
        lines += crossover(d, sizes, args.n_iter, args.threads, args.rounds)
        common.write(lines, args.out)
    meshes = [d for d in args.d if d <= 3]
    lines += cost_section(meshes, args.points, args.threads, max(5, args.rounds))
    lines += [
        "",
        "On finished t-SNE maps. The cost of a node is that of the convolution on the mesh. Near pairs are those",
        "within the radius of the near field, counted in both directions; their cost is that of the near-field sum.",
        "The last column is their number divided by that for points spread evenly over the bounding box of the map.",
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()

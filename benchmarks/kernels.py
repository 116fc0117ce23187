"""Cost of a kernel: time per iteration of t-SNE, g-SNE and a kernel written in NumPy, on Fashion-MNIST.

    python benchmarks/kernels.py [--data fashion] [--rounds 5] [--threads 2] [--out benchmarks/results/kernels.md]

Two measurements. *On one map*: all methods iterate on the finished t-SNE map, scaled to the length of their kernel and
kept fixed by a tiny learning rate, in alternation over several rounds. *In a run*: each method optimises from its own
start with its defaults.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np

import equipoise as eq
from equipoise.optimize.rules import Momentum

EVERY = 50  # iterations between two time stamps


class Loop(eq.kernels.Kernel):
    """A user-defined kernel, k = (1 + d2)^(−3/2)."""

    def value(self, d2: Any) -> Any:
        return (1 + d2) ** -1.5

    def slope(self, d2: Any) -> Any:
        return -1.5 * (1 + d2) ** -2.5


METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "TSNE()": (eq.TSNE, {}),
    "GSNE(alpha=-0.5, beta=2.5)": (eq.GSNE, {"alpha": -0.5, "beta": 2.5}),
    "SymmetricSNE(kernel=Loop())": (eq.SymmetricSNE, {"kernel": Loop()}),
}


class Clock:
    """A callback that records the time of each report."""

    def __init__(self) -> None:
        self.readings: list[tuple[int, float]] = []

    def __call__(self, iteration: int, loss: float, Y: Any) -> None:
        self.readings.append((iteration, time.perf_counter()))

    def per_iteration(self) -> list[float]:
        """Return seconds per iteration between reports."""
        pairs = zip(self.readings, self.readings[1:], strict=False)
        return [(t1 - t0) / (i1 - i0) for (i0, t0), (i1, t1) in pairs if i1 > i0]


def make(name: str, threads: int, **settings: Any) -> Any:
    kind, own = METHODS[name]
    return kind(perplexity=30, engine="grid", random_state=0, n_jobs=threads, **own, **settings)


def own_runs(X: np.ndarray, threads: int, n_iter: int) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Run each method from its own start; return seconds per iteration between reports, and the problems."""
    seconds, problems = {}, {}
    for name in METHODS:
        clock = Clock()
        problems[name] = make(name, threads, n_iter=n_iter).problem(X)
        problems[name].optimize(callbacks=[clock])
        seconds[name] = clock.per_iteration()
        print(f"{name}: {problems[name].n_iter} iterations, {1e3 * np.mean(seconds[name]):.2f} ms each", flush=True)
    return seconds, problems


def on_one_map(X: np.ndarray, Y: np.ndarray, threads: int, rounds: int) -> dict[str, list[float]]:
    """Iterate on the same map in alternation; return seconds per iteration of each round."""
    endless = Momentum(every=EVERY, min_loss_change=0.0, min_grad_norm=0.0)
    problems = {
        name: make(name, threads, learning_rate=1e-9, early_exaggeration=1.0, optimizer=endless).problem(X)
        for name in METHODS
    }
    places = {name: Y * problem.objective.kernel.length for name, problem in problems.items()}
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    for round_ in range(-1, rounds):  # the first round builds the tables of the kernels
        for name, problem in problems.items():
            clock = Clock()
            problem.optimize(n_iter=EVERY, Y0=places[name], callbacks=[clock])
            if round_ >= 0:
                seconds[name] += clock.per_iteration()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=common.DATASETS, default="fashion")
    parser.add_argument("--subset", type=int, default=None, help="number of random rows; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--n-iter", type=int, default=300, help="iterations of the runs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/kernels.md"))
    args = parser.parse_args()

    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "faiss-cpu"])
    try:
        data = common.load(args.data, args.subset)
    except FileNotFoundError as error:
        raise SystemExit(f"skipped: {error}") from None
    runs, problems = own_runs(data.X, args.threads, args.n_iter)
    still = on_one_map(data.X, problems["TSNE()"].Y, args.threads, args.rounds)

    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = (
        f"python benchmarks/kernels.py --data {args.data}{subset} --rounds {args.rounds} --n-iter {args.n_iter}"
        f" --threads {args.threads}"
    )
    first = next(iter(METHODS))
    rows = [
        [
            f"`{name}`",
            f"{1e3 * median(still[name]):.2f} ({1e3 * min(still[name]):.2f}–{1e3 * max(still[name]):.2f})",
            f"{median(still[name]) / median(still[first]):.2f}",
            f"{1e3 * np.mean(runs[name]):.2f}",
            f"{np.mean(runs[name]) / np.mean(runs[first]):.2f}",
            f"{problems[name].n_iter} iterations",
        ]
        for name in METHODS
    ]
    columns = ["", "on one map, ms per iteration (range)", "ratio", "in its run, ms per iteration", "ratio", "run"]
    lines = common.header(f"Cost of a kernel: {data.title}", command, where) + common.table(columns, rows)
    lines += [
        "",
        f"On one map: medians over {args.rounds} rounds of {EVERY} iterations, in alternation, on the t-SNE map scaled",
        "to the length of each kernel. In its run: the mean over all iterations from its own start, with its defaults.",
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()

"""What further iterations gain: the loss and the map after 300 to 2,000 iterations, and how well the gain is foretold.

    python benchmarks/convergence.py [--data digits mnist] [--methods] [--out benchmarks/results/convergence.md]

The losses and maps do not depend on the speed of the machine; the seconds do.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import common
import numpy as np

import equipoise as eq
from equipoise.evaluate import neighbor_recall
from equipoise.optimize.rules import GAP, MAX_ITER, remaining_gain

LAST = 2000  # iterations of each run
READINGS = (300, 500, 750, 1000, LAST)
EARLY = 100  # iterations of early exaggeration
K = 10  # neighbours that a map keeps or loses

Rows = Callable[[], np.ndarray]


def file(name: str) -> np.ndarray:
    """Return the table X of a file of ../shared/data."""
    with np.load(common.DATA / f"{name}.npz", allow_pickle=False) as content:
        return content["X"].astype(np.float64)


def connections() -> np.ndarray:
    """Return the distinct rows of KDD Cup 1999, log(1 + x), standardised."""
    X = np.log1p(np.unique(file("kddcup99_10pct"), axis=0))
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


DATA: dict[str, Rows] = {
    "digits": lambda: common.load("digits").X,
    "mnist 2,500": lambda: common.load("mnist", 2500).X,
    "mnist 5,000": lambda: common.load("mnist", 5000).X,
    "malaria cells": lambda: file("scrna_malaria_pf"),
    "mnist 10,000": lambda: common.load("mnist", 10_000).X,
    "flow spleen": lambda: file("flow_mouse_spleen"),
    "mnist 20,000": lambda: common.load("mnist", 20_000).X,
    "thymus cells": lambda: file("cytof_thymus"),
    "flow stem cells": lambda: file("flow_hesc_timecourse"),
    "mnist": lambda: common.load("mnist").X,
    "fashion": lambda: common.load("fashion").X,
    "connections": connections,
}
METHODS = [
    eq.SNE(), eq.SymmetricSNE(), eq.GSNE(), eq.PowerSNE(), eq.SphericalSNE(), eq.UMAP(), eq.DKLLE(), eq.DKPCA(),
]  # fmt: skip


@dataclass
class Run:
    """A descent of LAST iterations without stopping rules: its curve, its maps and its seconds at the readings."""

    curve: list[tuple[int, float]]
    maps: dict[int, np.ndarray]
    seconds: dict[int, float]  # since the start of the optimisation
    before: float  # seconds for neighbours, affinities and the initial map

    def loss(self, at: int) -> float:
        return dict(self.curve)[at]

    def until(self, at: int) -> list[tuple[int, float]]:
        return [report for report in self.curve if report[0] <= at]

    def gained(self, at: int) -> float:
        """Return the fraction by which the loss fell from iteration `at` to LAST."""
        return (self.loss(at) - self.loss(LAST)) / abs(self.loss(at))

    def stop(self) -> int | None:
        """Return where n_iter="auto" ends: two reports in a row with a remaining gain below GAP; None: after LAST."""
        small = {at: remaining_gain(self.until(at), EARLY) < GAP for at, _ in self.curve}
        at = sorted(small)
        return next((j for i, j in pairwise(at) if small[i] and small[j]), None)


def descend(method: Any, X: np.ndarray) -> Run:
    """Run a method for LAST iterations."""
    start = time.perf_counter()
    rule = eq.Momentum(min_grad_norm=0.0, min_loss_change=0.0)
    problem = method.set_params(random_state=0, optimizer=rule).problem(X)
    before = time.perf_counter() - start
    start, maps, seconds = time.perf_counter(), {}, {}

    def look(iteration: int, loss: float, Y: np.ndarray) -> None:
        if iteration in READINGS:
            maps[iteration], seconds[iteration] = Y.copy(), time.perf_counter() - start

    problem.optimize(n_iter=LAST, callbacks=[look])
    return Run([(int(i), float(loss)) for i, loss in problem.loss_curve], maps, seconds, before)


def rows_of(name: str, X: np.ndarray, run: Run) -> tuple[list[str], list[str]]:
    """Return the rows of both tables."""
    foretold = [f"{remaining_gain(run.until(at), EARLY):.1%} / {run.gained(at):.1%}" for at in READINGS[:-1]]
    stop = run.stop()
    end = f"after {LAST:,}" if stop is None else f"{stop:,} ({run.gained(stop):.1%})"
    kept = {at: neighbor_recall(X, Y, K) for at, Y in run.maps.items()}
    losses = [f"{run.loss(at):.4g} / {float(kept[at]):.1%}" for at in READINGS]
    title = f"{name}, n = {len(X):,}"
    return [title, *foretold, end], [title, *losses, f"{run.before:.1f} + {run.seconds[300]:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--methods", action="store_true", help="also all methods on digits")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/convergence.md"))
    args = parser.parse_args()
    names = "" if args.data == list(DATA) else " --data " + " ".join(f'"{name}"' for name in args.data)
    command = f"python benchmarks/convergence.py{names}{' --methods' * args.methods} --threads {args.threads}"
    head = common.header("What further iterations gain", command, common.machine(args.threads, ["equipoise", "numpy"]))
    head += INTRODUCTION
    cases = [(name, eq.TSNE(n_jobs=args.threads), DATA[name]) for name in args.data]
    if args.methods:
        cases += [(f"{type(m).__name__}, digits", m.set_params(n_jobs=args.threads), DATA["digits"]) for m in METHODS]
    foretold, losses = [], []
    for name, method, load in cases:
        X = load()
        for rows, row in zip((foretold, losses), rows_of(name, X, descend(method, X)), strict=True):
            rows.append(row)
        common.write(page(head, foretold, losses), args.out)


def page(head: list[str], foretold: list[list[str]], losses: list[list[str]]) -> list[str]:
    """Return the lines of the page."""
    at = [f"{reading:,}" for reading in READINGS]
    return [
        *head, "", "## The remaining gain: foretold / found", "",
        *common.table(["t-SNE, unless named", *at[:-1], '`n_iter="auto"` ends at'], foretold),
        "", "## The loss / the neighbours kept", "",
        *common.table(["t-SNE, unless named", *at, "seconds: before + 300 iterations"], losses),
    ]  # fmt: skip


INTRODUCTION = [
    f"One run of {LAST:,} iterations each from the same start, seed 0, without stopping rules. The first table",
    "compares, after so many iterations, the remaining gain that `remaining_gain_` states (docs/math.md, eq. R1) with",
    f"the decrease of the loss up to iteration {LAST:,}, both as fractions of the loss at that moment. Its last column",
    'says where `n_iter="auto"` ends, and in brackets what was still found after that; it ends after',
    f"{MAX_ITER:,} iterations at the latest. The second table gives the loss and the fraction of the {K} nearest",
    f"neighbours in the data that are among the {K} nearest in the map (on a sample, if there are many points).",
]


if __name__ == "__main__":
    main()

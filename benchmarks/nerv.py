"""NeRV on digits: do recall and precision move with λ as Venna et al. (2010) promise?

    python benchmarks/nerv.py [--seeds 5] [--n-iter 500] [--threads 1] [--out benchmarks/results/nerv.md]

The 20 nearest neighbours in the data of a point are relevant, as in Venna et al.; its r nearest points in the map are
retrieved. Precision is the share of the retrieved points that are relevant, recall the share of the relevant points
that are retrieved; both are averaged over the points. With r = 20 they are equal, so that precision is taken at small r
and recall at large r. Every seed starts from a random map. λ = 1 is t-SNE. Smaller λ start from its map, because
KL(Q ‖ P') has worse local minima: the page also shows the loss of fits from the random map itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import common
import numpy as np
from scipy.spatial import cKDTree

import equipoise as eq
from equipoise.views.style import COLORS, hide_axes, new_figure

RELEVANT = 20
FEW, MANY = 5, 50  # retrieved points at which precision and recall are judged
RETRIEVED = (FEW, MANY)
LAMBDAS = (1.0, 0.75, 0.5, 0.25, 0.0)
EPSILONS = (0.5, 0.1, 0.03, 0.01, 0.001)


class Result(NamedTuple):
    """What is measured on one map."""

    precision: np.ndarray  # at each of RETRIEVED
    recall: np.ndarray
    forward: float  # KL(P ‖ Q)
    backward: float  # KL(Q ‖ P') with the default ε
    loss: float
    outside: float  # share of Q on pairs without affinity


class Judge:
    """Measures maps of one data set."""

    def __init__(self, X: np.ndarray):
        near = cKDTree(X).query(X, RELEVANT + 1)[1]
        self.own = np.arange(len(X))
        self.relevant = np.zeros((len(X), len(X)), dtype=bool)
        self.relevant[self.own[:, None], near] = True
        self.relevant[self.own, self.own] = False

    def __call__(self, method: eq.SymmetricSNE) -> Result:
        Y, P = method.embedding_.astype(np.float64), method.affinities_.toarray().astype(np.float64)
        near = cKDTree(Y).query(Y, max(RETRIEVED) + 1)[1]
        others = np.array([row[row != i][: max(RETRIEVED)] for i, row in enumerate(near)])
        found = self.relevant[self.own[:, None], others].cumsum(axis=1)[:, np.array(RETRIEVED) - 1].mean(axis=0)
        Q = 1 / (1 + ((Y[:, None] - Y) ** 2).sum(axis=2))
        np.fill_diagonal(Q, 0)
        Q /= Q.sum()
        forward, backward = (eq.divergences.NeRV(lam).between(P, Q) for lam in (1.0, 0.0))
        off = P[~np.eye(len(P), dtype=bool)] == 0
        outside = float(Q[~np.eye(len(P), dtype=bool)][off].sum())
        return Result(found / np.array(RETRIEVED), found / RELEVANT, forward, backward, method.loss_, outside)


def fit(X: np.ndarray, divergence: eq.divergences.Divergence, seed: int, args: argparse.Namespace, init=None):
    """Return t-SNE's kernel with this divergence, fitted from a random map or from `init`."""
    kernel = eq.kernels.StudentT()
    method = eq.SymmetricSNE(kernel=kernel, divergence=divergence, init="random", random_state=seed, n_iter=args.n_iter)
    return method.set_params(engine="grid", n_jobs=args.threads).fit(X, init=init)


def measure(X: np.ndarray, args: argparse.Namespace):
    """Return the results of λ from t-SNE's map, of λ from the random map, and of λ = 0 for several ε; a list each."""
    judge = Judge(X)
    continued = {lam: [] for lam in LAMBDAS}
    scratch = {lam: [] for lam in LAMBDAS}
    mixed = {epsilon: [] for epsilon in EPSILONS}
    maps = {}
    for seed in range(args.seeds):
        first = fit(X, eq.divergences.NeRV(1.0), seed, args)
        for lam in LAMBDAS:
            divergence = eq.divergences.NeRV(lam)
            method = first if lam == 1 else fit(X, divergence, seed, args, first.embedding_)
            continued[lam].append(judge(method))
            scratch[lam].append(judge(first if lam == 1 else fit(X, divergence, seed, args)))
            maps.setdefault(lam, method.embedding_)
        for epsilon in EPSILONS:
            mixed[epsilon].append(judge(fit(X, eq.divergences.NeRV(0.0, epsilon), seed, args, first.embedding_)))
    return continued, scratch, mixed, maps


def show(values: Sequence[float], digits: int = 3) -> str:
    """Return the mean and its standard error."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}"


def column(results: list[Result], name: str, retrieved: int | None = None) -> np.ndarray:
    values = np.array([getattr(result, name) for result in results])
    return values if retrieved is None else values[:, RETRIEVED.index(retrieved)]


def verdict(continued: dict[float, list[Result]]) -> list[str]:
    """Return a line for recall and one for precision: whether they move in one direction from each λ to the next."""
    lines = []
    for name, r, sign in (("recall", MANY, -1), ("precision", FEW, 1)):
        steps = []
        for above, below in pairwise(LAMBDAS):
            change = column(continued[below], name, r) - column(continued[above], name, r)
            error = change.std(ddof=1) / np.sqrt(len(change))
            word = "as promised" if sign * change.mean() > 0 else "the other way"
            word = word if abs(change.mean()) > 2 * error else "no clear change"
            steps.append(f"{above:g} → {below:g}: {change.mean():+.4f} ± {error:.4f} ({word})")
        lines.append(f"- {name.capitalize()} at {r} retrieved, paired by seed: {'; '.join(steps)}.")
    return lines


def draw(continued: dict[float, list[Result]], maps: dict[float, np.ndarray], labels: np.ndarray, file: Path) -> None:
    """Draw precision against recall, a small dot per seed and a large one per λ, and the maps of three λ."""
    figure = new_figure(figsize=(11, 3.6), dpi=130)
    first, *rest = figure.subplots(1, 4, width_ratios=[1.5, 1, 1, 1])
    for lam, color in zip(LAMBDAS, COLORS, strict=False):
        recall, precision = column(continued[lam], "recall", MANY), column(continued[lam], "precision", FEW)
        first.plot(recall, precision, ".", color=color, markersize=4)
        first.plot(recall.mean(), precision.mean(), "o", color=color, markersize=8, label=f"λ = {lam:g}")
    first.legend(fontsize=8, loc="upper right", frameon=False)
    first.set_xlabel(f"recall: relevant points among the {MANY} nearest", fontsize=8)
    first.set_ylabel(f"precision: relevant among the {FEW} nearest", fontsize=8)
    first.tick_params(labelsize=8)
    first.margins(0.15)
    first.spines[["top", "right"]].set_visible(False)
    for axes, lam in zip(rest, (1.0, 0.5, 0.0), strict=True):
        axes.scatter(*maps[lam].T, s=1.5, c=[COLORS[label] for label in labels], linewidths=0)
        axes.set_aspect("equal", adjustable="datalim")
        hide_axes(axes)
        axes.set_title({1.0: "λ = 1, t-SNE", 0.5: "λ = ½", 0.0: "λ = 0"}[lam], fontsize=9)
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--n-iter", type=int, default=500)
    parser.add_argument("--subset", type=int, default=None)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/nerv.md"))
    args = parser.parse_args()
    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "scikit-learn"])
    data = common.load("digits", args.subset)
    continued, scratch, mixed, maps = measure(data.X, args)
    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = f"python benchmarks/nerv.py --seeds {args.seeds} --n-iter {args.n_iter}{subset} --threads {args.threads}"
    lines = common.header(f"NeRV, recall against precision: {data.title}", command, where)
    lines += [__doc__.split("\n\n")[2].replace("\n", " "), ""]
    columns = ["λ", "KL(P ‖ Q)", "KL(Q ‖ P')", f"precision, {FEW} retrieved", f"recall, {MANY} retrieved"]
    rows = []
    for lam in LAMBDAS:
        few, many = column(continued[lam], "precision", FEW), column(continued[lam], "recall", MANY)
        losses = (show(column(continued[lam], name)) for name in ("forward", "backward"))
        rows.append([f"{lam:g}", *losses, show(few), show(many), show(column(continued[lam], "loss"))])
        rows[-1].append(show(column(scratch[lam], "loss")))
    columns += ["loss", "loss from the random map"]
    lines += [*common.table(columns, rows), "", *verdict(continued), ""]
    lines += ["λ = 0 with several ε, from t-SNE's map:", ""]
    rows = []
    for epsilon, results in mixed.items():
        values = (column(results, "precision", FEW), column(results, "recall", MANY), column(results, "outside"))
        rows.append([f"{epsilon:g}", *map(show, values)])
    columns = ["ε", f"precision, {FEW} retrieved", f"recall, {MANY} retrieved", "share of Q on pairs without affinity"]
    outside = show(column(continued[1.0], "outside"))
    lines += [*common.table(columns, rows), "", f"In t-SNE's map that share is {outside}."]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    picture = args.out.with_suffix(".png")
    draw(continued, maps, data.labels, picture)
    common.write([*lines, "", f"![Precision against recall, and maps for three λ]({picture.name})"], args.out)


if __name__ == "__main__":
    main()

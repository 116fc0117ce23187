"""Figures 4, 5, 6 and 8 of Draganov & Dohn 2024 (paper 002): double-kernel LLE and UMAP, on 1000 points each.

    python benchmarks/papers/double_kernel.py [--umap umap-learn] [--threads 2] [--data mnist …] [--resume]
        [--out benchmarks/results/double_kernel.md]

UMAP is umap-learn or, with --umap equipoise, our sampling by the same scheme. Figures 4 and 8: the maps, with the
accuracy of a 10-nearest-neighbour classifier on them, by tenfold cross-validation, averaged over the seeds. Figure 5:
the DK-LLE loss during runs of UMAP, with and without random steps, and during its own minimisation, with momentum and
by plain descent, all from the same start. Figure 6: the ratios of eq. (9). Images are used unchanged (pixels from 0 to
1), tables are standardised, single cells are given by 50 principal components. The pictures and the verdicts, which
benchmarks/papers/run.py collects, are written next to the page. --resume keeps the data sets in build/double_kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common
from verdicts import Verdict, lower, mean_error

import equipoise as eq
from equipoise.views.style import COLORS, hide_axes, new_figure

SETS = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "usps": "USPS",
    "ionosphere": "Ionosphere",
    "seeds": "Seeds",
    "abalone": "Abalone",
    "diabetes": "Diabetes",
    "scrna_worm_neurons": "Single cells",
}
TABLES = ("ionosphere", "seeds", "abalone", "diabetes")
N = 1000
SEEDS = (0, 1)
EPOCHS = (0, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500)  # umap-learn makes 500 on so few points
RATES = (1.0, 0.3, 0.1)  # of plain descent
NEGATIVES = 5  # pairs of repulsion per edge, as in UMAP
BATCH = "our version moves all points at once, UMAP one edge at a time; one seed"
NEAR = 0.1  # two rows of eq. (9) are near-identical if they differ by at most this part on average
RANGES = ((2, 5), (5, 10), (10, 20), (20, 40), (40, 80))  # l and m of eq. (9)
SAMPLED = "DK-PCA by UMAP's sampling"
METHODS = {
    "DK-LLE": lambda seed: eq.DKLLE(random_state=seed),
    "DK-LLE, local bandwidth": lambda seed: eq.DKLLE(bandwidth="local", random_state=seed),
    "t-SNE": lambda seed: eq.TSNE(random_state=seed),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return 1000 rows, or all if there are fewer, and their classes."""
    if name == "diabetes":
        X, progression = load_diabetes(return_X_y=True)
        y = (progression > np.median(progression)).astype(int)
    else:
        with np.load(common.DATA / f"{name}.npz") as file:
            X, y = file["X"].astype(np.float64), file["y"]
    if name in TABLES:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    elif X.max() > 1 and not name.startswith("scrna"):
        X /= 255
    rows = np.random.RandomState(0).permutation(len(X))[:N]
    return np.ascontiguousarray(X[rows]), y[rows]


def accuracy(Y: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy of a 10-nearest-neighbour classifier, by tenfold cross-validation."""
    split = KFold(10, shuffle=True, random_state=0)
    return float(cross_val_score(KNeighborsClassifier(10), Y, y, cv=split).mean())


def preserved(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return B(X, Y; k), the share of points whose k-th neighbour is the same in both, for k = 1 to 80."""
    k = RANGES[-1][1]
    near = [NearestNeighbors(n_neighbors=k).fit(V).kneighbors(return_distance=False) for V in (X, Y)]
    return np.asarray((near[0] == near[1]).mean(axis=0))


def ratios(X: np.ndarray, maps: list[np.ndarray]) -> list[float]:
    """Return eq. (9) for each range, with B averaged over the maps."""
    B = np.mean([preserved(X, Y) for Y in maps], axis=0)
    return [float(B[low - 1 : high].sum() / (high - low) / B[0]) for low, high in RANGES]


Snapshots = list[tuple[int, np.ndarray]]  # epochs and maps


def umap_learn_run(X: np.ndarray, seed: int, rate: float = 1.0) -> tuple[np.ndarray, Snapshots]:
    """Return umap-learn's map, and the maps at EPOCHS; `rate` is the learning rate, by default 1."""
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that a seed disables its threads
        model = umap.UMAP(n_epochs=list(EPOCHS), learning_rate=rate, random_state=seed).fit(X)
    return model.embedding_, list(zip(EPOCHS, model.embedding_list_, strict=True))


def own_run(X: np.ndarray, seed: int, rate: float = 1.0) -> tuple[np.ndarray, Snapshots]:
    """Return the map of equipoise's UMAP by negative sampling, the scheme of umap-learn, and the maps on the way."""
    method = eq.UMAP(engine="negative_sampling", learning_rate=rate, random_state=seed, n_jobs=1)
    start = eq.LaplacianEigenmaps(n_neighbors=15).fit_transform(X)
    start = start * (10 / np.abs(start).max())  # extent and noise of umap-learn's start
    start = start + np.random.RandomState(seed).normal(scale=1e-4, size=start.shape)
    run: Snapshots = [(0, start)]
    problem = method.problem(X)
    problem.optimize(
        n_iter=EPOCHS[-1], Y0=start, callbacks=[lambda step, _, Y: run.append((step, np.array(Y, dtype=np.float64)))]
    )
    run = [*(pair for pair in run if pair[0] < EPOCHS[-1]), (EPOCHS[-1], np.array(problem.Y, dtype=np.float64))]
    return run[-1][1], run


RUNS = {"umap-learn": umap_learn_run, "equipoise": own_run}


def sampled_pca(X: np.ndarray, start: np.ndarray, seed: int) -> np.ndarray:
    """Return a map by UMAP's sampling with the forces of DK-PCA (fig. 4, column 1; eq. 7).

    In every epoch an edge of UMAP's graph is drawn with its weight as probability and attracts its ends by 4 k²;
    NEGATIVES random points repel its first end by 4 k³, with k = 1/(1 + d2). The rate decreases from 1 to 0.
    """
    rng = np.random.RandomState(seed)
    edges = eq.UMAP(random_state=seed, n_jobs=1).problem(X).affinities.tocoo()
    weights = edges.data / edges.data.max()
    Y = np.array(start, dtype=np.float64)
    for epoch in range(EPOCHS[-1]):
        drawn = rng.uniform(size=len(weights)) < weights
        i, j = edges.row[drawn], edges.col[drawn]
        far_i, far_j = np.repeat(i, NEGATIVES), rng.randint(len(X), size=NEGATIVES * len(i))
        step = np.zeros_like(Y)
        for a, b, power, sign in ((i, j, 2, -1.0), (far_i, far_j, 3, 1.0)):
            d = Y[a] - Y[b]
            force = sign * np.clip(4 * d / (1 + (d**2).sum(axis=1, keepdims=True)) ** power, -4, 4)
            for axis in range(2):
                step[:, axis] += np.bincount(a, force[:, axis], len(Y))
                if power == 2:  # the attraction moves both ends
                    step[:, axis] -= np.bincount(b, force[:, axis], len(Y))
        Y += (1 - epoch / EPOCHS[-1]) * step
    return Y


def curves(X: np.ndarray, snapshots: Snapshots, slower: Snapshots, threads: int) -> dict[str, np.ndarray]:
    """Return the DK-LLE loss during runs of UMAP and of DK-LLE from the same map, each as (step, loss).

    The steps of umap-learn are random: at its default learning rate they move points by more than the distance between
    neighbours until they have become small. So its run is repeated with a tenth of the learning rate, and our `UMAP`
    minimises the loss that these steps follow on average (Damrich & Hamprecht 2021), from the same map, without
    sampling.
    """
    plain = {"random_state": 0, "n_jobs": threads, "early_exaggeration": 1.0, "optimizer": eq.Momentum(every=10)}
    problem = eq.DKLLE(**plain).problem(X)
    found = {}
    for name, run in {"UMAP": snapshots, "UMAP, learning rate 0.1": slower}.items():
        found[name] = np.array([(epoch, problem.loss(Y)) for epoch, Y in run])
    expected: list[tuple[int, float]] = []
    umap = eq.UMAP(**plain).problem(X)
    umap.optimize(
        n_iter=EPOCHS[-1],
        Y0=snapshots[0][1],
        callbacks=[lambda step, _, Y: expected.append((step, problem.loss(Y)))],
    )
    problem.optimize(n_iter=EPOCHS[-1], Y0=snapshots[0][1])
    found |= {"UMAP without sampling": np.array(expected), "DK-LLE": problem.loss_curve}
    for rate in RATES:
        descent = {**plain, "optimizer": eq.GradientDescent(every=10, min_loss_change=0.0), "learning_rate": rate}
        slow = eq.DKLLE(**descent).problem(X)
        slow.optimize(n_iter=EPOCHS[-1], Y0=snapshots[0][1])
        found[f"DK-LLE, plain descent, rate {rate:g}"] = slow.loss_curve
    return found


def draw_maps(results: dict[str, Any], file: Path) -> None:
    names = (SAMPLED, "UMAP", "DK-LLE")
    figure = new_figure(figsize=(2.4 * len(results), 2.7 * len(names)), dpi=90)
    axes = figure.subplots(len(names), len(results))
    for column, (title, result) in enumerate(results.items()):
        values, number = np.unique(result["y"], return_inverse=True)
        few = len(values) <= len(COLORS)
        for row, name in enumerate(names):
            ax, Y = axes[row, column], result["maps"][name][0]
            color: Any = [COLORS[i] for i in number] if few else result["y"]
            ax.scatter(*Y.T, s=5, c=color, cmap=None if few else "viridis", linewidths=0)
            ax.set_aspect("equal", adjustable="datalim")
            hide_axes(ax)
            ax.set_title(f"{title}\n{name}: {np.mean(result['accuracy'][name]):.3f}", fontsize=9)
    figure.savefig(file)


def draw_curves(results: dict[str, Any], file: Path) -> None:
    figure = new_figure(figsize=(2.6 * len(results), 3), dpi=110)
    axes = figure.subplots(1, len(results), sharey=True)
    for ax, (title, result) in zip(axes, results.items(), strict=True):
        for (label, curve), color in zip(result["curves"].items(), COLORS, strict=False):
            ax.plot(curve[:, 0], curve[:, 1] / curve[0, 1], color=color, label=label)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("epoch or iteration")
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel("DK-LLE loss / initial loss")
    axes[0].legend(frameon=False, fontsize=7)
    figure.savefig(file)


def draw_ratios(results: dict[str, Any], file: Path) -> None:
    figure = new_figure(figsize=(2.6 * len(results), 2.6), dpi=110)
    axes = figure.subplots(1, len(results), sharey=True)
    for ax, (title, result) in zip(axes, results.items(), strict=True):
        names = ("UMAP", "DK-LLE", "t-SNE")
        for i, name in enumerate(names):
            ax.bar(np.arange(len(RANGES)) + (i - 1) * 0.27, result["ratios"][name], 0.27, color=COLORS[i], label=name)
        ax.set_xticks(range(len(RANGES)), [f"{low}–{high}" for low, high in RANGES], fontsize=8)
        ax.set_title(title, fontsize=10)
    axes[0].set_ylabel("eq. (9)")
    axes[-1].legend(frameon=False, fontsize=8)
    figure.savefig(file)


def measure(name: str, umap: str, threads: int) -> dict[str, Any]:
    X, y = load(name)
    runs = [RUNS[umap](X, seed) for seed in SEEDS]
    maps = {"UMAP": [run[0] for run in runs]}
    losses = curves(X, runs[0][1], RUNS[umap](X, SEEDS[0], 0.1)[1], threads)
    for method, make in METHODS.items():
        maps[method] = [make(seed).set_params(n_jobs=threads).fit_transform(X) for seed in SEEDS]
    maps[SAMPLED] = [sampled_pca(X, runs[0][1][0][1], SEEDS[0])]
    return {
        "n": len(X),
        "y": y,
        "maps": maps,
        "accuracy": {method: [accuracy(Y, y) for Y in made] for method, made in maps.items()},
        "curves": losses,
        "ratios": {method: ratios(X, made) for method, made in maps.items()},
        "factor": losses["UMAP"][-1, 1] / min(curve[:, 1].min() for curve in losses.values()),
    }


def page(results: dict[str, Any], lines: list[str], folder: str) -> list[str]:
    names = ["UMAP", SAMPLED, *METHODS]
    rows = []
    for title, result in results.items():
        scores = {name: np.array(result["accuracy"][name]) for name in names}
        difference = scores["DK-LLE"].mean() - scores["UMAP"].mean()
        cells = [f"{s.mean():.3f} ({s.min():.3f}–{s.max():.3f})" for s in scores.values()]
        rows.append([title, str(result["n"]), *cells, f"{100 * difference:+.1f}"])
    lines += ["## Accuracy of a 10-nearest-neighbour classifier on the map (fig. 4 and 8)", ""]
    lines += [
        f"Tenfold cross-validation; mean and range over {len(SEEDS)} seeds. Pictures: the maps of seed 0."
        f" “{SAMPLED}” is fig. 4, column 1, one seed; all points of an epoch are moved at once, which UMAP does not do,"
        " and some are thrown out. The classes of Diabetes are progression above and below the"
        " median; single cells are worm neurons of ten types (the paper has another set).",
        "",
    ]
    lines += common.table(["data", "n", *names, "DK-LLE − UMAP, percentage points"], rows)
    lines += ["", f"![Maps]({folder}_maps.png)", "", "## The DK-LLE loss during runs of UMAP (fig. 5)", ""]
    lines += [
        "Relative to the loss at UMAP's initial map, from which all runs start, without exaggeration. At its"
        " default learning rate the random steps of UMAP move points by more than the distance between neighbours"
        " until they have become small. “UMAP without sampling” is our `UMAP`, which minimises the loss that these"
        " steps follow on average. “DK-LLE” descends with momentum; the paper has plain descent, with the same learning"
        " rate as UMAP, which is 1. For a run that converged earlier its last value is shown. The largest increase is"
        " between two records: every 10 steps of ours, and at 10 or 12 epochs of UMAP.",
        "",
    ]
    marks = (0, 50, 100, 200, 500)
    rows = []
    for title, result in results.items():
        for label, curve in result["curves"].items():
            at = dict(curve)
            last = curve[-1, 1]
            values = [at.get(mark, last) / curve[0, 1] for mark in marks]
            rise = max(0.0, float(np.diff(curve[:, 1]).max())) / curve[0, 1]
            rows.append([title, label, *(f"{value:.3f}" for value in values), f"{rise:.3f}"])
    lines += common.table(["data", "run", *(f"step {mark}" for mark in marks), "largest increase"], rows)
    lines += ["", "Conjecture 5.1: the final loss of UMAP's map divided by the lowest loss of any run.", ""]
    lines += common.table(["data", "factor"], [[title, f"{r['factor']:.2f}"] for title, r in results.items()])
    lines += ["", f"![Losses]({folder}_loss.png)", "", "## Neighbourhood preservation, eq. (9) (fig. 6)", ""]
    lines += [f"B is averaged over the {len(SEEDS)} maps before the ratio is computed.", ""]
    rows = [[t, name, *(f"{v:.2f}" for v in r["ratios"][name])] for t, r in results.items() for name in names]
    lines += common.table(["data", "method", *(f"l, m = {low}, {high}" for low, high in RANGES)], rows)
    return [*lines, "", f"![Ratios]({folder}_neighbors.png)"]


def verdicts(results: dict[str, Any]) -> list[Verdict]:
    """Return the verdicts on the claims about figures 4 to 6, 8 and on conjecture 5.1."""
    found = []
    for where, claim, name in (
        ("002 Fig. 4, 8", "DK-LLE maps are quantitatively indistinguishable from UMAP's", "DK-LLE"),
        ("002 Fig. 4", "DK-PCA by UMAP's sampling is like UMAP", SAMPLED),
    ):
        d = [100 * (np.mean(r["accuracy"][name]) - np.mean(r["accuracy"]["UMAP"])) for r in results.values()]
        word = f"not decided (difference {np.mean(d):+.2f})".replace("-", "−")
        if not lower(d).startswith("not"):
            word = "no: the accuracy is lower" if np.mean(d) < 0 else "no: the accuracy is higher"
        if name == SAMPLED:
            word = f"not decided ({BATCH})"
        points = f"{mean_error(d)} points, at most {np.max(np.abs(d)):.1f}".replace("-", "−")
        found.append(Verdict(where, claim, word, f"10-NN accuracy less UMAP's over {len(d)} data sets: {points}"))
    for rate in RATES:
        name = f"DK-LLE, plain descent, rate {rate:g}"
        ends = [[r["curves"][run][-1, 1] / r["curves"][run][0, 1] for run in ("UMAP", name)] for r in results.values()]
        wins = sum(umap < plain for umap, plain in ends)
        halfway = [[np.interp(200, *r["curves"][run].T) for run in ("UMAP", name)] for r in results.values()]
        early = sum(umap < plain for umap, plain in halfway)
        evidence = f"lower on {wins} of {len(ends)} data sets at the end and on {early} at step 200; at the end mean"
        evidence += f" {np.mean(ends, axis=0)[0]:.2f} against"
        claim = f"UMAP ends at a lower DK-LLE loss than plain descent with rate {rate:g}"
        word = "yes" if wins == len(ends) else "no" if wins == 0 else f"on {wins} of {len(ends)} data sets"
        found.append(Verdict("002 Fig. 5", claim, word, f"{evidence} {np.mean(ends, axis=0)[1]:.2f} of the start"))
    for name in ("DK-LLE", "t-SNE"):
        off = [np.mean(np.abs(np.divide(r["ratios"][name], r["ratios"]["UMAP"]) - 1)) for r in results.values()]
        claim = f"UMAP and {name} have near-identical preservation, eq. (9)"
        evidence = f"mean relative difference {np.mean(off):.0%} ({min(off):.0%} to {max(off):.0%})"
        word = "yes" if np.mean(off) <= NEAR else "not decided (no baseline of two runs of UMAP)"
        found.append(Verdict("002 Fig. 6", claim, word, evidence))
    factors = [r["factor"] for r in results.values()]
    evidence = f"factor {min(factors):.2f} to {max(factors):.2f} on {len(factors)} data sets"
    claim = "UMAP's DK-LLE loss is within a constant factor of the minimum"
    found.append(Verdict("002 conjecture 5.1", claim, "consistent, not proved", evidence))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--umap", choices=list(RUNS), default="umap-learn", help="program for UMAP")
    parser.add_argument("--resume", action="store_true", help="keep existing results")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/double_kernel.md"))
    args = parser.parse_args()
    if args.umap == "umap-learn" and not common.installed("umap-learn"):
        raise SystemExit("skipped: umap-learn is not installed")
    if not common.DATA.exists():
        raise SystemExit("skipped: ../shared/data not found")
    where = common.machine(args.threads, ["equipoise", "umap-learn", "numpy", "scipy", "scikit-learn"])
    results = {}
    folder = common.ROOT / "build" / "double_kernel"
    folder.mkdir(parents=True, exist_ok=True)
    for name in args.data:
        kept = folder / f"{args.umap}-{name}.joblib"
        if not (args.resume and kept.exists()):
            joblib.dump(measure(name, args.umap, args.threads), kept)
        results[SETS[name]] = joblib.load(kept)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    stem = args.out.with_suffix("")
    draw_maps(results, Path(f"{stem}_maps.png"))
    draw_curves(results, Path(f"{stem}_loss.png"))
    draw_ratios(results, Path(f"{stem}_neighbors.png"))
    Path(f"{stem}.json").write_text(json.dumps(verdicts(results), indent=1, ensure_ascii=False) + "\n")
    left_out = ", ".join(title for name, title in SETS.items() if name not in args.data)
    command = f"python benchmarks/papers/double_kernel.py --umap {args.umap} --threads {args.threads}"
    lines = common.header("Double-kernel LLE and UMAP", command, where)
    lines += [f"UMAP is that of {args.umap}. Data sets left out for lack of time: {left_out or 'none'}.", ""]
    common.write(page(results, lines, stem.name), args.out)


if __name__ == "__main__":
    main()

"""Figures 4, 5, 6 and 8 of Draganov & Dohn 2024 (paper 002): double-kernel LLE and PCA, and UMAP, on 1000 points each.

    python benchmarks/papers/double_kernel.py [--threads 2] [--out benchmarks/results/double_kernel.md]

UMAP is umap-learn, which must be installed. Figures 4 and 8: the maps, with the accuracy of a 10-nearest-neighbour
classifier on them, by tenfold cross-validation, averaged over three seeds. “DK-PCA, sampled” is column 1 of figure 4:
the loss of DK-PCA, minimised by UMAP's sampling with umap-learn's number of epochs. Figure 5: the DK-LLE loss during
runs of UMAP, with and without random steps, and during its own minimisation, all from the same start. Figure 6: the
ratios of eq. (9). Images are used unchanged (pixels from 0 to 1), tables are standardised. The pictures are written
next to the page.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common

import equipoise as eq
from equipoise.views.style import COLORS, hide_axes, new_figure

SETS = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "usps": "USPS",
    "ionosphere": "Ionosphere",
    "seeds": "Seeds",
    "abalone": "Abalone",
}
TABLES = ("ionosphere", "seeds", "abalone")
N = 1000
SEEDS = (0, 1, 2)
EPOCHS = (0, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500)  # umap-learn makes 500 on so few points
RANGES = ((2, 5), (5, 10), (10, 20), (20, 40), (40, 80))  # l and m of eq. (9)
METHODS = {
    "DK-PCA, sampled": lambda seed: eq.DKPCA(engine="negative_sampling", n_iter=EPOCHS[-1], random_state=seed),
    "DK-LLE": lambda seed: eq.DKLLE(random_state=seed),
    "DK-LLE, local bandwidth": lambda seed: eq.DKLLE(bandwidth="local", random_state=seed),
    "t-SNE": lambda seed: eq.TSNE(random_state=seed),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return 1000 rows, or all if there are fewer, and their classes."""
    with np.load(common.DATA / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"]
    if name in TABLES:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    elif X.max() > 1:
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


def umap_run(X: np.ndarray, seed: int, rate: float = 1.0) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return umap-learn's map, and the maps at EPOCHS; `rate` is the learning rate, by default 1."""
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that a seed disables its threads
        model = umap.UMAP(n_epochs=list(EPOCHS), learning_rate=rate, random_state=seed).fit(X)
    return model.embedding_, model.embedding_list_


def curves(X: np.ndarray, snapshots: list[np.ndarray], threads: int) -> dict[str, np.ndarray]:
    """Return the DK-LLE loss during runs of UMAP and of DK-LLE from the same map, each as (step, loss).

    The steps of umap-learn are random: at its default learning rate they move points by more than the distance between
    neighbours until they have become small. So its run is repeated with a tenth of the learning rate, and our `UMAP`
    minimises the loss that these steps follow on average (Damrich & Hamprecht 2021), from the same map, without
    sampling.
    """
    plain = {"random_state": 0, "n_jobs": threads, "early_exaggeration": 1.0, "optimizer": eq.Momentum(every=10)}
    problem = eq.DKLLE(**plain).problem(X)
    found = {}
    for name, run in {"umap-learn": snapshots, "umap-learn, learning rate 0.1": umap_run(X, SEEDS[0], 0.1)[1]}.items():
        found[name] = np.array([(epoch, problem.loss(Y)) for epoch, Y in zip(EPOCHS, run, strict=True)])
    expected: list[tuple[int, float]] = []
    umap = eq.UMAP(**plain).problem(X)
    umap.optimize(
        n_iter=EPOCHS[-1],
        Y0=snapshots[0],
        callbacks=[lambda step, _, Y: expected.append((step, problem.loss(Y)))],
    )
    problem.optimize(n_iter=EPOCHS[-1], Y0=snapshots[0])
    return {**found, "UMAP without sampling": np.array(expected), "DK-LLE": problem.loss_curve}


def draw_maps(results: dict[str, Any], file: Path) -> None:
    names = ("UMAP", "DK-PCA, sampled", "DK-LLE")
    figure = new_figure(figsize=(3 * len(results), 9.9), dpi=110)
    axes = figure.subplots(len(names), len(results), squeeze=False)
    for column, (title, result) in enumerate(results.items()):
        values, number = np.unique(result["y"], return_inverse=True)
        few = len(values) <= len(COLORS)
        for row, name in enumerate(names):
            ax, Y = axes[row, column], result["maps"][name][0]
            color: Any = [COLORS[i] for i in number] if few else result["y"]
            ax.scatter(*Y.T, s=5, c=color, cmap=None if few else "viridis", linewidths=0)
            ax.set_aspect("equal", adjustable="datalim")
            hide_axes(ax)
            ax.set_title(f"{title}\n{name}: {np.mean(result['accuracy'][name]):.3f}", fontsize=11)
    figure.savefig(file)


def draw_curves(results: dict[str, Any], file: Path) -> None:
    figure = new_figure(figsize=(2.6 * len(results), 3), dpi=110)
    axes = figure.subplots(1, len(results), sharey=True)
    for ax, (title, result) in zip(axes, results.items(), strict=True):
        for (label, curve), color in zip(result["curves"].items(), COLORS[3::-1], strict=True):
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


def measure(name: str, threads: int) -> dict[str, Any]:
    X, y = load(name)
    runs = [umap_run(X, seed) for seed in SEEDS]
    maps = {"UMAP": [run[0] for run in runs]}
    losses = curves(X, runs[0][1], threads)
    for method, make in METHODS.items():
        maps[method] = [make(seed).set_params(n_jobs=threads).fit_transform(X) for seed in SEEDS]
    return {
        "n": len(X),
        "y": y,
        "maps": maps,
        "accuracy": {method: [accuracy(Y, y) for Y in made] for method, made in maps.items()},
        "curves": losses,
        "ratios": {method: ratios(X, made) for method, made in maps.items()},
    }


def page(results: dict[str, Any], lines: list[str], folder: str) -> list[str]:
    names = ["UMAP", *METHODS]
    rows = []
    for title, result in results.items():
        scores = {name: np.array(result["accuracy"][name]) for name in names}
        differences = [scores[name].mean() - scores["UMAP"].mean() for name in ("DK-PCA, sampled", "DK-LLE")]
        cells = [f"{s.mean():.3f} ({s.min():.3f}–{s.max():.3f})" for s in scores.values()]
        rows.append([title, str(result["n"]), *cells, *(f"{100 * difference:+.1f}" for difference in differences)])
    lines += ["## Accuracy of a 10-nearest-neighbour classifier on the map (fig. 4 and 8)", ""]
    lines += [f"Tenfold cross-validation; mean and range over {len(SEEDS)} seeds. Pictures: the maps of seed 0.", ""]
    differences = [f"{name} − UMAP, percentage points" for name in ("DK-PCA, sampled", "DK-LLE")]
    lines += common.table(["data", "n", *names, *differences], rows)
    lines += ["", f"![Maps]({folder}_maps.png)", "", "## The DK-LLE loss during runs of UMAP (fig. 5)", ""]
    lines += [
        "Relative to the loss at umap-learn's initial map, from which all runs start, without exaggeration. At its"
        " default learning rate the random steps of umap-learn move points by more than the distance between neighbours"
        " until they have become small. “UMAP without sampling” is our `UMAP`, which minimises the loss that these"
        " steps follow on average. For a run that converged earlier its last value is shown. The largest increase is"
        " between two records: every 10 steps of ours, and at 12 epochs of umap-learn.",
        "",
    ]
    marks = (0, 20, 100, 200, 500)
    rows = []
    for title, result in results.items():
        for label, curve in result["curves"].items():
            at = dict(curve)
            last = curve[-1, 1]
            values = [at.get(mark, last) / curve[0, 1] for mark in marks]
            rise = max(0.0, float(np.diff(curve[:, 1]).max())) / curve[0, 1]
            rows.append([title, label, *(f"{value:.3f}" for value in values), f"{rise:.3f}"])
    lines += common.table(["data", "run", *(f"step {mark}" for mark in marks), "largest increase"], rows)
    lines += ["", f"![Losses]({folder}_loss.png)", "", "## Neighbourhood preservation, eq. (9) (fig. 6)", ""]
    lines += [f"B is averaged over the {len(SEEDS)} maps before the ratio is computed.", ""]
    rows = [[t, name, *(f"{v:.2f}" for v in r["ratios"][name])] for t, r in results.items() for name in names]
    lines += common.table(["data", "method", *(f"l, m = {low}, {high}" for low, high in RANGES)], rows)
    return [*lines, "", f"![Ratios]({folder}_neighbors.png)"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/double_kernel.md"))
    args = parser.parse_args()
    if not common.installed("umap-learn"):
        raise SystemExit("skipped: umap-learn is not installed")
    if not common.DATA.exists():
        raise SystemExit("skipped: ../shared/data not found")
    where = common.machine(args.threads, ["equipoise", "umap-learn", "numpy", "scipy", "scikit-learn"])
    results = {SETS[name]: measure(name, args.threads) for name in args.data}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    stem = args.out.with_suffix("")
    draw_maps(results, Path(f"{stem}_maps.png"))
    draw_curves(results, Path(f"{stem}_loss.png"))
    draw_ratios(results, Path(f"{stem}_neighbors.png"))
    command = f"python benchmarks/papers/double_kernel.py --threads {args.threads}"
    lines = common.header("Double kernels and UMAP", command, where)
    common.write(page(results, lines, stem.name), args.out)


if __name__ == "__main__":
    main()

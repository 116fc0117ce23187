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
from pathlib import Path
from typing import Any

import joblib
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common
from double_kernel_runs import (
    BASELINE,
    EPOCHS,
    METHODS,
    RANGES,
    RATES,
    RUNS,
    SAMPLED,
    SEEDS,
    SETS,
    factors_by_size,
    measure,
)
from verdicts import Verdict, alike, alike_of_two, lower, mean_error

from equipoise.views.style import COLORS, hide_axes, new_figure


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
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False, fontsize=9)
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


def factor_table(results: dict[str, Any], growth: dict[int, list[float]]) -> list[str]:
    """Return the factors of conjecture 5.1 by data set and by number of points."""
    lines = [
        "",
        "Conjecture 5.1: the DK-LLE loss of UMAP's map divided by the lowest loss of any run, mean and range over"
        f" {len(SEEDS)} seeds; then on draws of MNIST of several sizes, over 3 seeds, with {2 * EPOCHS[-1]:,} steps of"
        " DK-LLE for the lowest loss.",
        "",
    ]
    found = {title: result["factors"] for title, result in results.items()}
    found |= {f"MNIST, n = {n:,}": factors for n, factors in growth.items()}
    rows = [[title, f"{np.mean(f):.2f}", f"{min(f):.2f}–{max(f):.2f}"] for title, f in found.items()]
    return [*lines, *common.table(["data", "factor", "range"], rows)]


def page(results: dict[str, Any], growth: dict[int, list[float]], lines: list[str], folder: str) -> list[str]:
    names = ["UMAP", *METHODS]
    rows = []
    for title, result in results.items():
        scores = {name: np.array(result["accuracy"][name]) for name in names}
        cells = [f"{s.mean():.3f} ({s.min():.3f}–{s.max():.3f})" for s in scores.values()]
        less = [100 * (scores[name].mean() - scores["UMAP"].mean()) for name in (SAMPLED, "DK-LLE")]
        rows.append([title, str(result["n"]), *cells, *(f"{value:+.1f}".replace("-", "−") for value in less)])
    lines += ["## Accuracy of a 10-nearest-neighbour classifier on the map (fig. 4 and 8)", ""]
    lines += [
        f"Tenfold cross-validation; mean and range over {len(SEEDS)} seeds. Pictures: the maps of seed 0."
        f' “{SAMPLED}” is fig. 4, column 1: `DKPCA(engine="negative_sampling")`. The last two columns are differences'
        " from UMAP in percentage points. The classes of Diabetes are progression above and below the"
        " median; single cells are worm neurons of ten types (the paper has another set).",
        "",
    ]
    lines += common.table(["data", "n", *names, f"{SAMPLED} − UMAP", "DK-LLE − UMAP"], rows)
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
    lines += [*factor_table(results, growth)]
    lines += ["", f"![Losses]({folder}_loss.png)", "", "## Neighbourhood preservation, eq. (9) (fig. 6)", ""]
    lines += [
        f"B is averaged over the {len(SEEDS)} maps before the ratio is computed. “UMAP, other seeds” is the average of"
        f" {len(BASELINE)} other maps of UMAP, which shows how much of a difference is chance; the maps of DK-LLE and"
        " t-SNE hardly depend on the seed, so that theirs is averaged less.",
        "",
    ]
    shown = [*names, "UMAP, other seeds"]
    rows = [[t, name, *(f"{v:.2f}" for v in r["ratios"][name])] for t, r in results.items() for name in shown]
    lines += common.table(["data", "method", *(f"l, m = {low}, {high}" for low, high in RANGES)], rows)
    return [*lines, "", f"![Ratios]({folder}_neighbors.png)"]


def verdicts(results: dict[str, Any], growth: dict[int, list[float]]) -> list[Verdict]:
    """Return the verdicts on the claims about figures 4 to 6, 8 and on conjecture 5.1, over the data sets."""
    found = []
    for where, claim, name in (
        ("002 Fig. 4, 8", "DK-LLE maps are quantitatively indistinguishable from UMAP's", "DK-LLE"),
        ("002 Fig. 4", "DK-PCA by UMAP's sampling is like UMAP", SAMPLED),
    ):
        d = [100 * (np.mean(r["accuracy"][name]) - np.mean(r["accuracy"]["UMAP"])) for r in results.values()]
        points = f"{mean_error(d)} points, at most {np.max(np.abs(d)):.1f}"
        evidence = f"10-NN accuracy less UMAP's over {len(d)} data sets, {len(SEEDS)} seeds: {points};"
        evidence = f"{evidence} each over the seeds: {by_data_set(results, name)}"
        found.append(Verdict(where, claim, alike(d, "accuracy", "data sets"), evidence))
    for rate in RATES:
        name = f"DK-LLE, plain descent, rate {rate:g}"
        ends = [[np.mean(r["ends"]), r["curves"][name][-1, 1] / r["curves"][name][0, 1]] for r in results.values()]
        wins = sum(umap < plain for umap, plain in ends)
        halfway = [[np.interp(200, *r["curves"][run].T) for run in ("UMAP", name)] for r in results.values()]
        early = sum(umap < plain for umap, plain in halfway)
        evidence = f"lower on {wins} of {len(ends)} data sets at the end and on {early} at step 200; at the end mean"
        evidence += f" {np.mean(ends, axis=0)[0]:.2f} against {np.mean(ends, axis=0)[1]:.2f} of the start"
        claim = f"UMAP ends at a lower DK-LLE loss than plain descent with rate {rate:g}"
        found.append(Verdict("002 Fig. 5", claim, lower([u - p for u, p in ends], "loss", "data sets"), evidence))
    chance = np.array([distance(r, "UMAP, other seeds") for r in results.values()])
    for name in ("DK-LLE", "t-SNE"):
        off = np.array([distance(r, name) for r in results.values()])
        claim = f"UMAP and {name} have near-identical preservation, eq. (9)"
        evidence = (
            f"mean relative difference {off.mean():.0f} % ({off.min():.0f} to {off.max():.0f}) on {len(off)} data"
        )
        evidence += f" sets; of two sets of {len(SEEDS)} maps of UMAP {chance.mean():.0f} %, which is subtracted"
        word = alike(off - chance, "preservation", "data sets")
        word = word.replace("higher by", "farther apart than two sets of maps of UMAP by")
        found.append(Verdict("002 Fig. 6", claim, word, evidence))
    factors = [factor for r in results.values() for factor in r["factors"]]
    by_size = ", ".join(f"{np.mean(f):.2f} at {n:,}" for n, f in growth.items())
    evidence = f"factor {min(factors):.2f} to {max(factors):.2f} on {len(results)} data sets; draws of MNIST: {by_size}"
    claim = "UMAP's DK-LLE loss is within a constant factor of the minimum"
    found.append(Verdict("002 conjecture 5.1", claim, "consistent, not proved", evidence))
    return found


def by_data_set(results: dict[str, Any], name: str) -> str:
    """Return on which data sets the accuracy is alike, higher and lower, over the seeds."""
    kinds: dict[str, list[str]] = {"alike within 1 point": [], "higher": [], "lower": [], "not decided": []}
    for title, result in results.items():
        mine, umap = (100 * np.array(result["accuracy"][which]) for which in (name, "UMAP"))
        word = alike_of_two(mine, umap, "accuracy")
        kind = next((kind for kind in ("higher", "lower", "not decided") if kind in word), "alike within 1 point")
        kinds[kind].append(title)
    return ", ".join(f"{kind} on {len(titles)} ({', '.join(titles)})" for kind, titles in kinds.items() if titles)


def distance(result: dict[str, Any], name: str) -> float:
    """Return the mean relative difference of eq. (9) from UMAP's, in per cent."""
    return float(100 * np.mean(np.abs(np.divide(result["ratios"][name], result["ratios"]["UMAP"]) - 1)))


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
    kept = folder / f"{args.umap}-sizes.joblib"
    if not (args.resume and kept.exists()):
        joblib.dump(factors_by_size(args.umap, args.threads), kept)
    growth = joblib.load(kept)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    stem = args.out.with_suffix("")
    draw_maps(results, Path(f"{stem}_maps.png"))
    draw_curves(results, Path(f"{stem}_loss.png"))
    draw_ratios(results, Path(f"{stem}_neighbors.png"))
    Path(f"{stem}.json").write_text(json.dumps(verdicts(results, growth), indent=1, ensure_ascii=False) + "\n")
    left_out = ", ".join(title for name, title in SETS.items() if name not in args.data)
    command = f"python benchmarks/papers/double_kernel.py --umap {args.umap} --threads {args.threads}"
    lines = common.header("Double-kernel LLE and UMAP", command, where)
    lines += [f"UMAP is that of {args.umap}. Data sets left out for lack of time: {left_out or 'none'}.", ""]
    common.write(page(results, growth, lines, stem.name), args.out)


if __name__ == "__main__":
    main()

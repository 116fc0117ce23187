"""Figures 4-7 of paper 001: four methods on MNIST and COIL-20, and the Davies-Bouldin index on their maps."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import SPHERE, Ledger, Task, scores
from panels import draw_maps, save
from verdicts import Verdict

import equipoise as eq
from equipoise.evaluate import davies_bouldin_curve
from equipoise.views.style import COLORS, new_figure

TITLE = "Paper 001, Fig. 4–7: four methods, and the Davies-Bouldin index over numbers of clusters"
# The paper uses α = −1 in these figures and does not state β. With β = 2, as in its Table 2, g-SNE would be t-SNE
# (docs/math.md, section 2). So g-SNE is shown with the β of the tightest clusters in its Fig. 9, and with the settings
# of the paper's program.
METHODS = {
    "SNE": eq.SymmetricSNE(),
    "s-SNE": SPHERE,
    "t-SNE": eq.TSNE(),
    "g-SNE, β = 1.5": eq.GSNE(alpha=-1.0, beta=1.5, eta=1.0),
    "g-SNE, program": eq.GSNE(alpha=-0.5, beta=3.0, eta=0.1),
}
FIGURES = {"mnist-6k": ("4", "6", 10, tuple(range(2, 21))), "coil20": ("5", "7", 20, tuple(range(2, 41, 2)))}
DRAWN_IN = (COLORS[1], COLORS[4], COLORS[3], COLORS[0], COLORS[2])
SEED = 0


def measure(task: Task, ledger: Ledger) -> None:
    for column, (maps_in, curves_in, _, clusters) in FIGURES.items():

        def run(column: str = column, maps_in: str = maps_in, clusters: tuple[int, ...] = clusters) -> dict[str, Any]:
            rows = task.source.draw(column, SEED)
            maps = {name: task.embed(method, rows.X, SEED) for name, method in METHODS.items()}
            found = {
                name: {**scores(Y, rows.labels), "curve": davies_bouldin_curve(Y, task.few(clusters, 6)).index.tolist()}
                for name, Y in maps.items()
            }
            titled = [(f"{name}: {found[name]['error']:.1%}", Y) for name, Y in maps.items()]
            draw_maps(titled, [rows.labels] * len(maps), task.picture(f"fig{maps_in}"))
            return found

        draw_curves(ledger.get(column, run), task.few(clusters, 6), task, curves_in)


def draw_curves(found: dict[str, Any], clusters: tuple[int, ...], task: Task, number: str) -> None:
    figure = new_figure(figsize=(6, 3.4), dpi=90)
    axes = figure.subplots()
    for (name, numbers), color in zip(found.items(), DRAWN_IN, strict=True):
        axes.plot(clusters, numbers["curve"], color=color, marker="o", markersize=3, label=name)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("clusters")
    axes.set_ylabel("Davies-Bouldin index")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    save(figure, task.picture(f"fig{number}"))


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "The paper uses α = −1 and does not state β; β = 2 would be t-SNE. So g-SNE is shown with α = −1, β = 1.5, and"
        " with α = −0.5, β = 3, η = 0.1, the settings of the paper's program. SNE is the symmetric form; s-SNE maps to"
        " the sphere, shown in Mollweide's projection. Clusters are found by k-means (`davies_bouldin_curve`). Claim of"
        " the paper: g-SNE has the lowest index, and its minimum is near the true number of classes.",
        "",
    ]
    for column, found in values.items():
        maps_in, curves_in, classes, clusters = FIGURES[column]
        tried = task.few(clusters, 6)
        rows = []
        for name, numbers in found.items():
            curve = numbers["curve"]
            at = int(np.argmin(curve))
            there = f"{curve[tried.index(classes)]:.3f}" if classes in tried else "–"
            row = [name, f"{numbers['error']:.2%}", f"{min(curve):.3f} at {tried[at]}", there]
            rows.append([*row, f"{numbers['separation']:.3f}"])
        lowest = min(found, key=lambda name: min(found[name]["curve"]))
        nearest = min(found, key=lambda name: abs(tried[int(np.argmin(found[name]["curve"]))] - classes))
        head = ["method", "1-NN error", "lowest index", f"at {classes} clusters", "of the true classes"]
        lines += [f"### {task.source.title(column)} (Fig. {maps_in} and {curves_in})", ""]
        lines += [*common.table(head, rows), ""]
        lines += [f"Lowest index: {lowest}. Minimum nearest to {classes} clusters: {nearest}.", ""]
        for what, number in (("Maps", maps_in), ("Index", curves_in)):
            lines += [f"![{what}]({task.folder.name}/fig{number}.png)", ""]
    return lines[:-1]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    return []

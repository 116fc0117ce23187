"""Figures 4-7 of paper 001: four methods on MNIST and COIL-20, and the Davies-Bouldin index on their maps."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import SPHERE, Ledger, Task, remaining_gain, scores
from panels import draw_maps, save
from rows import draws, only_starts
from verdicts import Verdict, lower, mean_error, with_gain

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
    "g-SNE, program's settings": eq.GSNE(alpha=-0.5, beta=3.0, eta=0.1),
}
FIGURES = {"mnist-3k": ("4", "6", 10, tuple(range(4, 21, 2))), "coil20": ("5", "7", 20, tuple(range(8, 37, 4)))}
DRAWN_IN = (COLORS[1], COLORS[4], COLORS[3], COLORS[0], COLORS[2])


def measure(task: Task, ledger: Ledger) -> None:
    for column, (maps_in, curves_in, _, clusters) in FIGURES.items():
        tried = task.few(clusters, 6)
        for seed in task.few(draws(column), 1):

            def run(column: str = column, maps_in: str = maps_in, tried: Any = tried, seed: int = seed) -> Any:
                rows = task.source.draw(column, seed)
                models = {name: task.fit(method, rows.X, seed) for name, method in METHODS.items()}
                maps = {name: np.asarray(model.embedding_, dtype=np.float64) for name, model in models.items()}
                found = {}
                for name, Y in maps.items():
                    curve = davies_bouldin_curve(Y, tried).index.tolist()
                    found[name] = {**scores(Y, rows.labels), "curve": curve, "gain": remaining_gain(models[name])}
                if seed == draws(column)[0]:
                    titled = [(f"{name}: {found[name]['error']:.1%}", Y) for name, Y in maps.items()]
                    draw_maps(titled, [rows.labels] * len(maps), task.picture(f"fig{maps_in}"))
                return found

            ledger.get(f"{column}/{seed}", run)
        draw_curves(means(ledger.values, column), tried, task, curves_in)


def series(values: dict[str, Any], column: str, name: str, score: str) -> np.ndarray:
    """Return a score of a method, one row per draw."""
    found = (values.get(f"{column}/{seed}") for seed in draws(column))
    return np.array([value[name][score] for value in found if value is not None])


def means(values: dict[str, Any], column: str) -> dict[str, Any]:
    """Return the curves of every method, averaged over the draws."""
    return {name: {"curve": series(values, column, name, "curve").mean(axis=0)} for name in METHODS}


def draw_curves(found: dict[str, Any], clusters: tuple[int, ...], task: Task, number: str) -> None:
    figure = new_figure(figsize=(7.5, 3.4), dpi=90)
    axes = figure.subplots()
    for (name, numbers), color in zip(found.items(), DRAWN_IN, strict=True):
        axes.plot(clusters, numbers["curve"], color=color, marker="o", markersize=3, label=name)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("clusters")
    axes.set_ylabel("Davies-Bouldin index")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, task.picture(f"fig{number}"))


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "The paper uses α = −1 and does not state β; β = 2 would be t-SNE. So g-SNE is shown with α = −1, β = 1.5, and"
        " with α = −0.5, β = 3, η = 0.1, the settings of the paper's program. SNE is the symmetric form; s-SNE maps to"
        " the sphere, shown in Mollweide's projection. Clusters are found by k-means (`davies_bouldin_curve`); mean ±"
        " standard error over the draws (COIL-20: random starts on the same rows), maps of the first one. Claim of"
        " the paper: g-SNE has the lowest index, and its minimum is near the true number of classes. The gain is the"
        " largest decrease of the loss in the last fifth of a run, relative to the final loss.",
        "",
    ]
    for column, (maps_in, curves_in, classes, clusters) in FIGURES.items():
        if not len(series(values, column, "t-SNE", "error")):
            continue
        tried = task.few(clusters, 6)
        rows = []
        for name in METHODS:
            curves = series(values, column, name, "curve")
            least = curves.mean(axis=0)
            there = mean_error(curves[:, tried.index(classes)], ".3f") if classes in tried else "–"
            row = [name, mean_error(100 * series(values, column, name, "error")), mean_error(curves.min(axis=1), ".3f")]
            gain = f"{series(values, column, name, 'gain').max():.2%}"
            rows.append([*row, str(tried[int(np.argmin(least))]), there, gain])
        head = ["method", "1-NN error, %", "lowest index", "clusters there", f"index at {classes} clusters", "gain"]
        lines += [f"### {task.source.title(column)} (Fig. {maps_in} and {curves_in})", ""]
        lines += [*common.table(head, rows), ""]
        for what, number in (("Maps", maps_in), ("Index", curves_in)):
            lines += [f"![{what}]({task.folder.name}/fig{number}.png)", ""]
    return lines[:-1]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = []
    for column, (_, number, classes, clusters) in FIGURES.items():
        tried = np.array(task.few(clusters, 6))
        curves = {name: series(values, column, name, "curve") for name in METHODS}
        if not len(curves["t-SNE"]):
            continue
        least = {name: curve.min(axis=1) for name, curve in curves.items()}
        places = {name: tried[curve.argmin(axis=1)] for name, curve in curves.items()}
        title = f"{task.source.title(column)}{', starts only' if only_starts(column) else ''}"
        listed = ", ".join(f"{name} {mean_error(place, '.1f')}" for name, place in places.items())
        for name in (name for name in METHODS if name.startswith("g-SNE")):
            gains = [*series(values, column, name, "gain"), *series(values, column, "t-SNE", "gain")]
            word = with_gain(lower(least[name] - least["t-SNE"], "index"), gains)
            evidence = f"lowest index {mean_error(least[name], '.3f')} against {mean_error(least['t-SNE'], '.3f')}"
            claim = f"{name} has a lower index than t-SNE ({title})"
            found.append(Verdict(f"001 Fig. {number}", claim, word, f"{len(least[name])} draws, {evidence}"))
            farther = np.abs(places[name] - classes) - np.abs(places["t-SNE"] - classes)
            claim = f"the minimum of {name} is nearer to {classes} clusters than that of t-SNE ({title})"
            word = with_gain(lower(farther, "clusters"), gains)
            found.append(Verdict(f"001 Fig. {number}", claim, word, f"mean place of the minimum: {listed}"))
    return found

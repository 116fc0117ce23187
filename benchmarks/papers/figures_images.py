"""Figures 8, 16 and 17 of paper 001: handwritten sixes and faces, as points and as the images themselves."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import Ledger, Task, remaining_gain, scores
from panels import draw_images, draw_maps
from rows import draws
from verdicts import Verdict, lower, mean_error, with_gain

import equipoise as eq
from equipoise.evaluate import neighbor_recall

TITLE = "Paper 001, Fig. 8, 16 and 17: sixes and faces"
SIXES = {"t-SNE": eq.TSNE(), "g-SNE, β = 2.2": eq.GSNE(alpha=-1.0, beta=2.2, eta=1.0)}
FACES = {"t-SNE": eq.TSNE(), "g-SNE, α = −0.8, β = 2.2": eq.GSNE(alpha=-0.8, beta=2.2, eta=1.0)}
SIX, COUNT = 6, 500
SIX_DRAWS = tuple(range(10))  # MNIST's training set has 5,918 sixes


def measure(task: Task, ledger: Ledger) -> None:
    def fit(methods: dict[str, Any], X: np.ndarray, seed: int) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        models = {name: task.fit(method, X, seed) for name, method in methods.items()}
        maps = {name: np.asarray(model.embedding_, dtype=np.float64) for name, model in models.items()}
        return maps, {name: remaining_gain(model) for name, model in models.items()}

    def sixes(seed: int) -> dict[str, dict[str, float]]:
        rows = task.source.of_class("mnist-6k", SIX, COUNT, seed)
        maps, gains = fit(SIXES, rows.X, seed)
        if seed == SIX_DRAWS[0]:
            draw_images(list(maps.items()), rows.images, task.picture("fig8"))
        return {name: {"kept": neighbor_recall(rows.X, Y, 10), "gain": gains[name]} for name, Y in maps.items()}

    def faces(seed: int) -> dict[str, dict[str, float]]:
        rows = task.source.draw("olivetti", seed)
        maps, gains = fit(FACES, rows.X, seed)
        found = {name: {**scores(Y, rows.labels), "gain": gains[name]} for name, Y in maps.items()}
        if seed == draws("olivetti")[0]:
            titled = [(f"{name}: {found[name]['error']:.1%}", Y) for name, Y in maps.items()]
            draw_maps(titled, [rows.labels] * len(maps), task.picture("fig16"))
            draw_images(list(maps.items())[1:], 255 - rows.images, task.picture("fig17"), side=26)
        return found

    for seed in task.few(SIX_DRAWS, 1):
        ledger.get(f"sixes/{seed}", lambda seed=seed: sixes(seed))
    for seed in task.few(draws("olivetti"), 1):
        ledger.get(f"faces/{seed}", lambda seed=seed: faces(seed))


def series(values: dict[str, Any], what: str, name: str, score: str) -> np.ndarray:
    """Return a score of a method, one per draw; errors in per cent."""
    scale = 100 if score == "error" else 1
    return np.array([scale * found[name][score] for key, found in values.items() if key.startswith(f"{what}/")])


def page(values: dict[str, Any], task: Task) -> list[str]:
    kept = "; ".join(f"{name} {mean_error(series(values, 'sixes', name, 'kept'), '.3f')}" for name in SIXES)
    count = len(series(values, "sixes", "t-SNE", "kept"))
    lines = [
        f"Mean ± standard error over the draws, pictures of the first. Fig. 8: {COUNT} sixes, or all if fewer; {count}"
        f" draws without a common image. Share of the 10 nearest neighbours kept: {kept}.",
        "",
    ]
    lines += [f"![Sixes]({task.folder.name}/fig8.png)", "", f"Fig. 16: {task.source.title('olivetti')}.", ""]
    rows = []
    for name in FACES:
        cells = [mean_error(series(values, "faces", name, s), f) for s, f in (("error", ".2f"), ("silhouette", ".3f"))]
        gain = f"{series(values, 'faces', name, 'gain').max():.2%}"
        rows.append([name, str(len(series(values, "faces", name, "error"))), *cells, gain])
    lines += common.table(["method", "starts", "1-NN error, %", "silhouette of the persons", "gain"], rows)
    lines += ["", f"![Faces]({task.folder.name}/fig16.png)", "", "Fig. 17: the second map as images.", ""]
    return [*lines, f"![Faces]({task.folder.name}/fig17.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = []
    for figure, what, methods, score, claim in (
        (
            "8",
            "sixes",
            SIXES,
            "kept",
            "g-SNE separates shapes of sixes better (share of the 10 nearest neighbours kept)",
        ),
        ("16", "faces", FACES, "error", "g-SNE groups faces better (1-NN error, starts only)"),
        ("16", "faces", FACES, "silhouette", "g-SNE groups faces better (silhouette, starts only)"),
    ):
        t, g = (series(values, what, name, score) for name in methods)
        gains = [gain for name in methods for gain in series(values, what, name, "gain")]
        word = lower(g - t if score == "error" else t - g, score)
        evidence = f"{len(t)} draws: {mean_error(g, '.3f')} against {mean_error(t, '.3f')}"
        found.append(Verdict(f"001 Fig. {figure}", claim, with_gain(word, gains), evidence))
    return found

"""Figures 8, 16 and 17 of paper 001: handwritten sixes and faces, as points and as the images themselves."""

from __future__ import annotations

from typing import Any

import common
from experiment import Ledger, Task, scores
from panels import draw_images, draw_maps
from verdicts import Verdict

import equipoise as eq
from equipoise.evaluate import neighbor_recall

TITLE = "Paper 001, Fig. 8, 16 and 17: sixes and faces"
SIXES = {"t-SNE": eq.TSNE(), "g-SNE, β = 2.2": eq.GSNE(alpha=-1.0, beta=2.2, eta=1.0)}
FACES = {"t-SNE": eq.TSNE(), "g-SNE, α = −0.8, β = 2.2": eq.GSNE(alpha=-0.8, beta=2.2, eta=1.0)}
SIX, COUNT = 6, 500
SEED = 0


def measure(task: Task, ledger: Ledger) -> None:
    def sixes() -> dict[str, float]:
        rows = task.source.of_class("mnist-6k", SIX, COUNT)
        maps = {name: task.embed(method, rows.X, SEED) for name, method in SIXES.items()}
        draw_images(list(maps.items()), rows.images, task.picture("fig8"))
        return {name: neighbor_recall(rows.X, Y, 10) for name, Y in maps.items()}

    def faces() -> dict[str, dict[str, float]]:
        rows = task.source.draw("olivetti", SEED)
        maps = {name: task.embed(method, rows.X, SEED) for name, method in FACES.items()}
        found = {name: scores(Y, rows.labels) for name, Y in maps.items()}
        titled = [(f"{name}: {found[name]['error']:.1%}", Y) for name, Y in maps.items()]
        draw_maps(titled, [rows.labels] * len(maps), task.picture("fig16"))
        draw_images(list(maps.items())[1:], 255 - rows.images, task.picture("fig17"), side=26)
        return found

    ledger.get("sixes", sixes)
    ledger.get("faces", faces)


def page(values: dict[str, Any], task: Task) -> list[str]:
    kept = "; ".join(f"{name} {recall:.3f}" for name, recall in values["sixes"].items())
    lines = [f"Fig. 8: {COUNT} sixes, or all if fewer. Share of the 10 nearest neighbours kept: {kept}.", ""]
    lines += [f"![Sixes]({task.folder.name}/fig8.png)", "", f"Fig. 16: {task.source.title('olivetti')}.", ""]
    rows = [[name, f"{s['error']:.2%}", f"{s['separation']:.3f}"] for name, s in values["faces"].items()]
    lines += common.table(["method", "1-NN error", "Davies-Bouldin index of the classes"], rows)
    lines += ["", f"![Faces]({task.folder.name}/fig16.png)", "", "Fig. 17: the second map as images.", ""]
    return [*lines, f"![Faces]({task.folder.name}/fig17.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    sixes, faces = values["sixes"], values["faces"]
    kept = ", ".join(f"{name} {recall:.3f}" for name, recall in sixes.items())
    wrong = ", ".join(f"{name} {found['error']:.1%}" for name, found in faces.items())
    return [
        Verdict("001 Fig. 8", "g-SNE separates shapes of sixes better", "not decided (one map)", f"10-NN kept: {kept}"),
        Verdict("001 Fig. 16", "g-SNE groups faces better", "not decided (one map)", f"1-NN error: {wrong}"),
    ]

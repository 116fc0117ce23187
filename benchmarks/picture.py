"""The maps of a comparison side by side: a row per data set, a column per tool, coloured by class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import map_file, middle, show
from matplotlib.lines import Line2D
from tools import METHODS

from equipoise.views.style import COLORS, hide_axes, new_figure


def draw_maps(report: dict[str, Any], folder: Path, out: Path) -> None:
    """Draw the maps of the first run, a row per data set and a column per tool, coloured by class."""
    ran = [(result, {r["method"] for r in result["records"]}) for result in report["results"]]
    rows = [(result, [name for name in METHODS if name in names]) for result, names in ran if names]
    if not rows:
        return
    width = max(len(names) for _, names in rows)
    figure = new_figure(figsize=(3.6 * width, 4.2 * len(rows)), dpi=130)
    grid = figure.subfigures(len(rows), 1, squeeze=False)
    for (result, names), part in zip(rows, grid[:, 0], strict=True):
        axes = part.subplots(1, width, squeeze=False)[0]
        part.suptitle(result["title"], fontsize=12)
        for ax in axes[len(names) :]:
            ax.set_axis_off()
        for name, ax in zip(names, axes, strict=False):
            records = [r for r in result["records"] if r["method"] == name and r["run"] >= 0 and "failed" not in r]
            draw_map(ax, name, records, map_file(folder, result["name"], name))
        _legend(part, result["classes"])
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)


def draw_map(ax: Any, name: str, records: list[dict[str, Any]], file: Path) -> None:
    """Draw one map, with the time and the loss above it."""
    hide_axes(ax)
    ax.set_aspect("equal", adjustable="datalim")
    seconds, kl = middle(records, "total_s"), middle(records, "kl")
    time_text = f"optimise {show(middle(records, 'optimise_s'), '.1f')} s" if seconds is None else f"{seconds:.1f} s"
    ax.set_title(f"{name}\n{time_text}" + ("" if kl is None else f", KL {kl:.3f}"), fontsize=10)
    if not file.exists():
        ax.text(0.5, 0.5, "no map", ha="center", transform=ax.transAxes)
        return
    with np.load(file) as stored:
        Y, labels = stored["Y"], stored["labels"]
    order = np.random.RandomState(0).permutation(len(Y))  # so that no class hides the others
    colors = np.array(COLORS)[labels[order] % len(COLORS)]
    size = float(np.clip(8000 / len(Y), 0.25, 8.0))
    ax.scatter(*Y[order].T, s=size, c=colors, linewidths=0)


def _legend(part: Any, classes: list[str]) -> None:
    handles = [
        Line2D([], [], marker="o", linestyle="", markersize=5, color=COLORS[i % len(COLORS)], label=label)
        for i, label in enumerate(classes)
    ]
    part.legend(handles=handles, loc="outside lower center", ncols=len(classes), frameon=False, fontsize=8,
                handletextpad=0.1, columnspacing=1.0)  # fmt: skip

"""A map as a scatter plot: 1-D as a strip, 2-D as it is, 3-D in perspective, a sphere in Mollweide's projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array
from .style import COLORS, bare, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def scatter(Y: Array, labels: Any = None, classes: Sequence[str] | None = None, title: str = "") -> Figure:
    """Return a figure of the map Y (n, d), coloured by class, each class named where most of it lies."""
    Y = np.asarray(Y, dtype=np.float64)
    n, d = Y.shape
    axes: Any
    on_sphere = d == 3 and np.allclose(np.linalg.norm(Y, axis=1), 1, atol=1e-4)
    figure: Figure = new_figure(figsize=(8, 4.5) if on_sphere else (7, 7), dpi=150)
    if on_sphere:
        axes = figure.add_subplot(projection="mollweide")
        axes.grid(True, color="#e0e0e0")
        axes.set_axisbelow(True)
        axes.set_xticklabels([])
        axes.set_yticklabels([])
        points = np.column_stack([np.arctan2(Y[:, 1], Y[:, 0]), np.arcsin(np.clip(Y[:, 2], -1, 1))])
    elif d >= 3:
        axes = figure.add_subplot(projection="3d")
        points = Y[:, :3]
    else:
        axes = figure.add_subplot()
        bare(axes)
        axes.set_aspect("equal" if d == 2 else "auto")
        points = Y if d == 2 else np.column_stack([Y[:, 0], np.random.RandomState(0).uniform(-1, 1, n)])
        if d == 1:
            axes.set_ylim(-8, 8)
    axes.set_title(title)
    size = float(np.clip(6000 / n, 1.0, 20.0))
    if labels is None:
        axes.scatter(*points.T, s=size, color=COLORS[0], linewidths=0)
        return figure
    values, number = np.unique(np.asarray(labels), return_inverse=True)
    axes.scatter(*points.T, s=size, c=[COLORS[i % len(COLORS)] for i in number], linewidths=0)
    for i, value in enumerate(values):
        name = str(value) if classes is None else classes[int(value)]
        _halo(axes.text(*_heart(points[number == i]), name, ha="center", va="center", fontweight="bold", fontsize=11))
    return figure


def _heart(points: Array) -> Array:
    """Return the point with the most of its class around it, so that a name never falls between two islands."""
    sample = points[np.linspace(0, len(points) - 1, min(len(points), 500)).astype(int)]
    d2 = ((sample[:, None] - sample[None]) ** 2).sum(axis=2)
    kth = np.sort(d2, axis=1)[:, len(sample) // 2]
    heart: Array = sample[kth.argmin()]
    return heart


def _halo(text: Any) -> None:
    from matplotlib.patheffects import withStroke

    text.set_path_effects([withStroke(linewidth=3, foreground="white")])

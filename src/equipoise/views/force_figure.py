"""Draw force laws (Lin et al. 2024, Fig. 3) and kernels as functions of distance."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from .._types import Array
from .style import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def force_figure(r: Array, attraction: dict[str, Array], repulsion: dict[str, Array]) -> Figure:
    """Return a figure of attraction and repulsion against distance, one curve per method.

    Parameters
    ----------
    r : ndarray of shape (m,)
        Distances.
    attraction, repulsion : dict of str to ndarray of shape (m,)
        Magnitudes of the force at these distances, by the name of the method.
    """
    figure: Figure = new_figure(figsize=(10, 4.2), dpi=150)
    for axes, title, curves in zip(
        figure.subplots(1, 2), ("attraction", "repulsion"), (attraction, repulsion), strict=True
    ):
        for i, (name, force) in enumerate(curves.items()):
            axes.plot(r, force, label=name, color=COLORS[i % len(COLORS)], linewidth=2)
        # Power laws diverge at 0; a peak far above the second highest one is cut off, so as not to flatten the others.
        peaks = sorted(float(force.max()) for force in curves.values())
        second = peaks[max(len(peaks) - 2, 0)]
        axes.set_ylim(0, 1.15 * (peaks[-1] if peaks[-1] < 2 * second else second))
        axes.set_xlim(0, r.max())
        axes.set_xlabel("distance r in the map")
        axes.set_ylabel("force between two points")
        axes.set_title(title)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def kernel_figure(r: Array, similarity: dict[str, Array], p: float, distance: dict[str, float]) -> Figure:
    """Return a figure of kernels against distance, one curve per method, with the distances of the similarity p.

    Parameters
    ----------
    r : ndarray of shape (m,)
        Distances.
    similarity : dict of str to ndarray of shape (m,)
        k(r²)/k(0) at these distances, by the name of the method.
    p : float
        A similarity, drawn as a horizontal line.
    distance : dict of str to float
        The distance at which each kernel is p, drawn as a vertical line; NaN for none.
    """
    figure: Figure = new_figure(figsize=(7, 4.2), dpi=150)
    axes = figure.subplots()
    axes.axhline(p, color="#5b6172", linewidth=0.8, linestyle=":")
    for i, (name, k) in enumerate(similarity.items()):
        color = COLORS[i % len(COLORS)]
        axes.plot(r, k, label=name, color=color, linewidth=2)
        if isfinite(x := distance[name]):
            axes.plot([x, x], [0, p], color=color, linewidth=1.2, linestyle="--")
            axes.plot(x, p, "o", color=color, markersize=5)
            axes.annotate(f"{x:.2f}", (x, p), xytext=(4, 4), textcoords="offset points", color=color)
    axes.annotate(f"p = {p:g}", (r.max(), p), xytext=(-4, 4), textcoords="offset points", ha="right", color="#5b6172")
    axes.set_xlim(0, r.max())
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("distance r in the map")
    axes.set_ylabel("similarity k(r²)/k(0)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure

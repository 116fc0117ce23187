"""Draw force laws, the attraction and repulsion as functions of distance (Lin et al. 2024, Fig. 3)."""

from __future__ import annotations

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

"""One look for all pictures."""

from __future__ import annotations

from typing import Any

# M. Petroff, "Accessible Color Sequences for Data Visualization", 2021: ten colours told apart with colour-blindness.
COLORS = ("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd")


def new_figure(**kwargs: Any) -> Any:
    """Return a matplotlib figure that needs no display and no pyplot state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained", **kwargs)
    FigureCanvasAgg(figure)
    return figure


def bare(axes: Any) -> None:
    """Take the frame and the ticks away: the coordinates of a map mean nothing by themselves."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)

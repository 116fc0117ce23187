"""One look for all pictures."""

from __future__ import annotations

from typing import Any

# P. Tol, "Colour Schemes", 2021, the muted scheme and one orange: told apart with every common colour-blindness.
COLORS = ("#332288", "#88ccee", "#ee7733", "#117733", "#cc6677", "#ddcc77", "#aa4499", "#44aa99", "#999933", "#882255")


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

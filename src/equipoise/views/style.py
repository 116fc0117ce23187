"""One look for all pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# M. A. Petroff, "Accessible Color Sequences for Data Visualization", 2021 (arXiv:2107.02270), ten colours,
# the greys moved to the end. Simulated protanopia, deuteranopia and tritanopia leave any two at least 17 apart in
# CIELAB, tests/test_plot.py.
COLORS = ("#3f90da", "#ffa90e", "#bd1f01", "#832db6", "#92dadd", "#a96b59", "#e76300", "#b9ac70", "#94a4a2", "#717581")


def _lightened(color: str, share: float) -> str:
    """Return a colour mixed with a share of white."""
    return "#" + "".join(f"{round((1 - share) * int(color[i : i + 2], 16) + share * 255):02x}" for i in (1, 3, 5))


@dataclass(frozen=True)
class Theme:
    """The colours of a picture: paper, ink, and those of points."""

    paper: str
    ink: str
    soft: str  # for what matters less
    missing: str  # of points without a value
    colors: tuple[str, ...]
    ramp: tuple[float, float]  # the part of viridis that stands out from the paper


LIGHT = Theme("#ffffff", "#1d2230", "#5b6172", "#d0d3d9", COLORS, (0.0, 0.94))
# A tenth of white lifts red and purple above a contrast of 3 to the dark paper (WCAG 2.1, 1.4.11).
DARK = Theme("#14161c", "#f2f3f7", "#a4abbd", "#4a4f5c", tuple(_lightened(c, 0.1) for c in COLORS), (0.14, 1.0))


def dot_size(n: int) -> float:
    """Return the diameter, in pixels of a page, of each of n points."""
    return float(np.clip(300 / np.sqrt(max(n, 1)), 2.5, 8.0))


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

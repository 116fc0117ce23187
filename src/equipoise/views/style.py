"""Colours and helper functions shared by all plots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

# M. A. Petroff, "Accessible Color Sequences for Data Visualization", 2021 (arXiv:2107.02270), ten colours. The two
# greys look alike, and like missing values; pink and indigo, found by a search, replace them. Under simulated
# protanopia, deuteranopia and tritanopia any two differ by at least 17 in CIELAB (tests/views/test_plot.py).
COLORS = ("#3f90da", "#ffa90e", "#bd1f01", "#832db6", "#92dadd", "#a96b59", "#e76300", "#b9ac70", "#cc528f", "#4733ff")


def _lighten(color: str, amount: float) -> str:
    """Return a colour mixed with a fraction `amount` of white."""
    return "#" + "".join(f"{round((1 - amount) * int(color[i : i + 2], 16) + amount * 255):02x}" for i in (1, 3, 5))


# Control characters, surrogates and non-characters; the bidirectional overrides and isolates.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


MAX_LENGTH = 28  # characters of the name of a class that are shown; chosen


@dataclass(frozen=True)
class Theme:
    """The colours of a plot or page."""

    background: str
    text: str
    muted: str  # secondary text
    missing: str  # points without a value
    colors: tuple[str, ...]
    ramp: tuple[float, float]  # the part of viridis that is visible on the background


LIGHT = Theme("#ffffff", "#1d2230", "#5b6172", "#d0d3d9", COLORS, (0.0, 0.94))
# 10 % of white gives red and purple a contrast above 3 to the dark background (WCAG 2.1, 1.4.11).
DARK = Theme("#14161c", "#f2f3f7", "#a4abbd", "#4a4f5c", tuple(_lighten(c, 0.1) for c in COLORS), (0.14, 1.0))
THEMES = {"light": LIGHT, "dark": DARK}


def dot_size(n: int) -> float:
    """Return the diameter in CSS pixels of each of n points on a page."""
    return float(np.clip(300 / np.sqrt(max(n, 1)), 2.5, 8.0))


def new_figure(**kwargs: Any) -> Any:
    """Return a matplotlib figure that needs neither a display nor pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained", **kwargs)
    FigureCanvasAgg(figure)
    return figure


def hide_axes(axes: Any) -> None:
    """Hide frame and ticks: the coordinates of a map have no intrinsic meaning."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


def add_legend(axes: Any, **kwargs: Any) -> None:
    """Add a legend below a map, and move the note, which is the label of the x axis, below the legend."""
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), frameon=False, **kwargs)
    if axes.get_xlabel():
        axes.xaxis.labelpad = 10 + legend.get_window_extent().height * 72 / axes.figure.dpi


def as_text(name: str) -> str:
    """Return a name without characters that are invalid in XML, and therefore in SVG.

    Such characters are replaced by U+FFFD, and so are the marks that reverse the direction of the text after them.
    """
    return UNPRINTABLE.sub("\ufffd", name.replace("\t", " "))


def shorten(name: str) -> str:
    """Return the name of a class on one line, cut to at most 28 characters."""
    name = as_text(" ".join(name.split()))
    return name if len(name) <= MAX_LENGTH else name[: MAX_LENGTH - 1] + "…"


def check_title(title: Any) -> None:
    """Raise ValueError unless a title is text or None."""
    if not isinstance(title, str | None):
        raise ValueError(f"title must be text, got {title!r}")

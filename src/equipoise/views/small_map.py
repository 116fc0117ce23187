"""Draw a small map, as one of several in a figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from .style import COLORS, as_text, hide_axes


def draw_map(axes: Any, Y: Array, colors: Any, title: str = "", colormap: str | None = None) -> Any:
    """Draw the first two dimensions of a map Y (n, d) without axes, and return the dots.

    A map with one dimension is drawn on a line. Rows of NaN are left out.
    """
    x, y = (Y[:, 0], Y[:, 1]) if Y.shape[1] > 1 else (Y[:, 0], np.zeros(len(Y)))
    size = float(np.clip(2500 / len(Y), 0.6, 12.0))
    dots = axes.scatter(x, y, s=size, c=colors, cmap=colormap, linewidths=0)
    axes.set_title(as_text(title), fontsize=9, parse_math=False)
    axes.set_aspect("equal", adjustable="datalim")
    hide_axes(axes)
    return dots


def class_colors(labels: Any) -> list[str]:
    """Return one colour per label; equal labels have the same colour."""
    codes = np.unique(np.asarray(labels), return_inverse=True)[1]
    return [COLORS[i % len(COLORS)] for i in codes]

"""Draw the Tissot ellipses of a map: the images of equal circles in the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..._types import Array
from ...views.ellipses import draw_ellipses
from ...views.spacing import spaced_rows
from ...views.style import LIGHT, as_text, hide_axes, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNT = 150  # ellipses, if there are enough points; chosen
WIDEST, NARROWEST = 1 / 12, 1 / 60  # limits of the distance between two ellipses, relative to the larger side; chosen
USUAL = 0.4  # half axis of the median ellipse, in units of that distance; chosen
LONGEST = 1.0  # the same of the longest ellipse that is drawn; larger ones are drawn smaller; chosen
COLORED = 0.95  # quantile of the values at which colours end; chosen


class Ellipses(Protocol):
    """What is drawn; `LocalIsometry` documents the attributes."""

    @property
    def Y(self) -> Array: ...

    @property
    def points(self) -> Array: ...

    @property
    def stretch(self) -> Array: ...

    @property
    def axes(self) -> Array: ...

    @property
    def area(self) -> Array: ...

    @property
    def anisotropy(self) -> Array: ...


def tissot_figure(found: Ellipses, color: str, title: str | None = None) -> Figure:
    """Return a figure of a map in the plane with Tissot ellipses at points that are far enough apart.

    `color` is "area", the area factor relative to its median, or "anisotropy".
    """
    if found.Y.shape[1] != 2 or found.stretch.shape[1] != 2:
        raise ValueError(
            f"Tissot ellipses need a map and tangent spaces of 2 dimensions, got {found.Y.shape[1]} and"
            f" {found.stretch.shape[1]}; the attributes stretch and axes have the same information"
        )
    figure: Figure = new_figure(figsize=(8, 7.4), dpi=110)
    draw_tissot(figure.subplots(), found, color)
    if title is not None:
        figure.suptitle(as_text(title), fontsize=12)
    return figure


def draw_tissot(axes: Any, found: Ellipses, color: str) -> None:
    """Draw the map and its ellipses, with a colour bar."""
    known = np.flatnonzero(np.isfinite(found.stretch).all(axis=1))
    positions, stretch = found.Y[found.points[known]], found.stretch[known]
    drawn, side = _choose(positions)
    drawn = drawn[np.argsort(-stretch[drawn, 0], kind="stable")]  # small ellipses on top
    radius = USUAL * side / max(float(np.median(stretch[drawn, 0])), np.finfo(np.float64).tiny)
    half_axes = radius * stretch[drawn]
    longest = LONGEST * side
    cut = half_axes[:, 0] > longest
    half_axes[cut] *= longest / half_axes[cut, :1]
    values, style, ticks, label = _coloring(found.area[known], found.anisotropy[known], color)
    hide_axes(axes)
    axes.set_aspect("equal", adjustable="datalim")
    axes.scatter(*found.Y.T, s=2, color=LIGHT.missing, linewidths=0)
    size = float(np.clip(6000 / len(positions), 0.8, 6.0))
    dots = axes.scatter(*positions.T, s=size, c=values, linewidths=0, alpha=0.6)
    ellipses = draw_ellipses(axes, positions[drawn], found.axes[known][drawn], half_axes, values[drawn])
    for layer in (dots, ellipses):
        layer.set(**style)
    smaller = f"; {cut.sum()} of {len(drawn)} are drawn smaller" if cut.any() else ""
    axes.set_xlabel(f"images of circles of radius {radius:.2g} in the data{smaller}")
    bar = axes.figure.colorbar(ellipses, ax=axes, orientation="horizontal", shrink=0.6, aspect=30, label=label)
    bar.set_ticks(np.log2(ticks), labels=[f"{x:g}" if x >= 1 else f"1/{1 / x:g}" for x in ticks])
    bar.minorticks_off()


def _choose(positions: Array) -> tuple[Array, float]:
    """Return about COUNT points that are far enough apart for ellipses, and the smallest distance between them."""
    width = float(np.ptp(positions, axis=0).max())
    side = WIDEST * width
    rows = spaced_rows(positions, side)
    while len(rows) < min(COUNT, len(positions)) and side > NARROWEST * width:
        side *= 0.85
        rows = spaced_rows(positions, side)
    return rows, side


def _coloring(area: Array, anisotropy: Array, color: str) -> tuple[Array, dict[str, Any], list[float], str]:
    """Return the values to colour by, in powers of two, the colour map and its limits, the ticks and a label."""
    if color == "area":
        values = np.log2(np.maximum(area / np.median(area), 1e-300))
        end = max(1.0, float(np.ceil(np.quantile(np.abs(values), COLORED))))
        style = {"cmap": "coolwarm", "clim": (-end, end)}
        step = max(1.0, np.ceil(end / 3))
        powers = np.arange(-(end // step) * step, end + 0.5, step)
        return values, style, [float(2.0**p) for p in powers], "area factor, relative to its median"
    finite = np.where(np.isfinite(anisotropy), anisotropy, np.inf)
    values = np.log2(np.minimum(finite, 1e300))
    end = max(0.5, float(np.quantile(values, COLORED)))
    ticks = [x for x in (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000) if np.log2(x) <= end]
    return values, {"cmap": "viridis", "clim": (0.0, end)}, ticks, "anisotropy: long over short axis"

"""A map as a picture: 1-D as a strip, 2-D as it is, 3-D in perspective, a sphere in Mollweide's projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array
from .coloring import limits, ramp, row_colors
from .column import Classes, Column, Numbers, read_column
from .labels import draw_names, hearts
from .plane import check_map, in_plane, on_sphere
from .style import DARK, LIGHT, Theme, bare, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..problems.forces import Problem

MANY = 100_000  # points from which their density is drawn, not each of them
ABOVE = 0.4  # inches above and below the map, for its title and a note
MARGIN = 0.04  # of the broader side, around the map, thrice that where arrows stand out; chosen


def plot(
    Y: Any,
    color: Any = None,
    *,
    names: Sequence[str] | None = None,
    title: str = "",
    dark: bool = False,
    ax: Axes | None = None,
    size: float | None = None,
    images: Any = None,
    forces: Problem | None = None,
    over: Any = None,
) -> Figure:
    """Return a matplotlib figure of the map Y (n, d), with equal axes.

    Parameters
    ----------
    Y : the map (n, d), or a fitted method, which stands for its `embedding_`
    color : a value for each point. Text, truth values and whole numbers of at most 20 different values are classes,
        each with its name near its middle; other numbers are a quantity, from dark to bright. Missing values are grey.
    names : names of the classes that `color` numbers from 0
    ax : axes to draw on; they must be 3-D for a map in 3-D
    size : diameter of a dot, or side of an image, in points of 1/72 inch
    images : (n, height, width) grey or (n, height, width, 3), uint8 or between 0 and 1; drawn in place of the dots, as
        many as fit without overlap, framed in the colour of their class
    forces : a problem, whose attraction and repulsion are drawn as arrows at some of the points; for maps in 2-D
    over : the map (m, d), or the fitted method, that `transform` placed the rows of Y in; drawn beneath, in grey

    Past 100,000 points a flat map shows the density of the points, in their mean colour.
    """
    Y = check_map(Y)
    theme = DARK if dark else LIGHT
    column = None if color is None else read_column(color, len(Y), "color", names)
    if names is not None and color is None:
        raise ValueError("names belong to classes; give the class of each point as color")
    if forces is not None and Y.shape[1] != 2:
        raise ValueError(f"forces are drawn on maps in 2-D, this one is in {Y.shape[1]}-D")
    if images is not None:
        from .thumbnails import check_images

        images = check_images(images, len(Y))
    ground = np.empty((0, Y.shape[1])) if over is None else _check_ground(over, Y.shape[1])
    laid_out, note, projection = _laid_out(np.vstack([ground, Y]))
    beneath, points = np.split(laid_out, [len(ground)])
    if len(ground):
        note = f"{note}{'; ' * bool(note)}in grey the {len(ground):,} points of the map they were placed in"
    if images is not None and projection:
        raise ValueError("images are drawn on flat maps, not in perspective or on a sphere")
    axes: Any = _new_axes(laid_out, projection, theme) if ax is None else _given_axes(ax, projection)
    _dress(axes, laid_out, theme, title, note, MARGIN if forces is None else 3 * MARGIN)
    if isinstance(column, Numbers):
        _draw_ramp(axes, column, theme)
    axes.figure.draw_without_rendering()  # the layout, which decides where a pixel is
    places = hearts(points, column) if isinstance(column, Classes) else np.empty((0, points.shape[1]))
    colors = row_colors(column, len(Y), places, theme)
    if column is None and forces is not None:
        colors[:] = _rgb(theme.soft)
    _draw_ground(axes, beneath, theme, projection)
    if images is not None:
        drawn = _draw_images(axes, points, images, size, None if column is None else colors)
    elif len(Y) > MANY and not projection and size is None:
        _draw_density(axes, points, colors)
        drawn = np.empty((0, 4))  # a name hides none of so many points: it stands in their midst
    else:
        drawn = _draw_dots(axes, points, colors, column, size)
    if forces is not None:
        from .arrows import draw_forces

        draw_forces(axes, points, forces, theme)
    if isinstance(column, Classes):
        _draw_names(axes, places, points, column, theme, note, drawn)
    figure: Figure = axes.figure
    return figure


def _check_ground(over: Any, d: int) -> Array:
    ground = check_map(over)
    if ground.shape[1] != d:
        raise ValueError(f"Y is a map in {d}-D and over one in {ground.shape[1]}-D; they must be of the same map")
    return ground


def _laid_out(Y: Array) -> tuple[Array, str, str | None]:
    """Return what is drawn, a word about it, and the projection of matplotlib that draws it."""
    if on_sphere(Y):
        return np.column_stack([np.arctan2(Y[:, 1], Y[:, 0]), np.arcsin(np.clip(Y[:, 2], -1, 1))]), "", "mollweide"
    if Y.shape[1] == 3:
        return Y, "", "3d"
    return *in_plane(Y), None


def _new_axes(points: Array, projection: str | None, theme: Theme) -> Any:
    broad, high = np.ptp(points, axis=0)[:2]
    shape = (8.0, 4.5) if projection == "mollweide" else (7.0, 7.0)
    if projection is None and broad > 0:
        shape = (7.0, float(np.clip(7 * high / broad + ABOVE, 2.2, 9.0)))
    figure = new_figure(figsize=shape, dpi=150, facecolor=theme.paper)
    return figure.add_subplot(projection=projection)


def _given_axes(axes: Any, projection: str | None) -> Any:
    kind = "rectilinear" if projection is None else projection
    if axes.name != kind:
        raise ValueError(
            f"this map needs axes made with projection={kind!r}, the ones given are {axes.name!r}; leave ax out"
        )
    return axes


def _dress(axes: Any, points: Array, theme: Theme, title: str, note: str, margin: float) -> None:
    axes.set_facecolor(theme.paper)
    axes.set_title(title, color=theme.ink)
    if axes.name == "mollweide":
        axes.set_xlabel(note, color=theme.soft)
        axes.grid(True, color=theme.missing)
        axes.spines["geo"].set_color(theme.missing)
        axes.set_axisbelow(True)
        axes.set_xticklabels([])
        axes.set_yticklabels([])
        return
    low, high = points.min(axis=0), points.max(axis=0)
    pad = margin * (float((high - low).max()) or 1.0)
    axes.set_xlim(low[0] - pad, high[0] + pad)
    axes.set_ylim(low[1] - pad, high[1] + pad)
    if axes.name == "3d":
        axes.set_zlim(low[2] - pad, high[2] + pad)
        axes.set_box_aspect(high - low + 2 * pad, zoom=1.1)  # equal axes
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_pane_color(theme.paper)
            axis.set_ticklabels([])
            axis.line.set_color(theme.missing)
            axis.set_tick_params(color=theme.missing)
        if note:
            axes.text2D(0.5, 0, note, transform=axes.transAxes, ha="center", color=theme.soft)
        return
    bare(axes)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel(note, color=theme.soft)


def _draw_ramp(axes: Any, numbers: Numbers, theme: Theme) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    low, high = limits(numbers)
    known = numbers.values[np.isfinite(numbers.values)]
    below, above = bool((known < low).any()), bool((known > high).any())
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max"}.get((below, above), "both")
    scale = ScalarMappable(Normalize(low, high), ListedColormap(ramp(theme)))
    bar = axes.figure.colorbar(scale, ax=axes, shrink=0.6, aspect=30, pad=0.02, extend=extend)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=theme.ink)
    if numbers.name != "color":
        bar.set_label(numbers.name, color=theme.ink)


def _draw_ground(axes: Any, points: Array, theme: Theme, projection: str | None) -> None:
    """Draw what lies beneath, in grey and no larger than need be."""
    colors = np.tile(_rgb(theme.missing), (len(points), 1))
    if len(points) > MANY and not projection:
        _draw_density(axes, points, colors)
    elif len(points):
        _draw_dots(axes, points, colors, None, float(np.sqrt(np.clip(6000 / len(points), 1.0, 12.0))))


def _draw_dots(axes: Any, points: Array, colors: Array, column: Column | None, size: float | None) -> Array:
    """Draw the dots and return the boxes (n, 4) that they take, in pixels."""
    n = len(points)
    broad = axes.get_window_extent().width / axes.figure.dpi  # inches
    area = float(np.clip(12000 / n, 1.0, 24.0)) * min(broad / 7, 1.0) if size is None else size**2
    order = np.random.RandomState(0).permutation(n)  # so that the last class does not cover the others
    if column is not None:  # what is missing lies at the bottom
        missing = column.codes < 0 if isinstance(column, Classes) else np.isnan(column.values)
        order = order[np.argsort(~missing[order], kind="stable")]
    axes.scatter(*points[order].T, s=area, c=colors[order], linewidths=0, zorder=2, rasterized=n > 10_000)
    pixels, radius = axes.transData.transform(_flat(axes, points)), np.sqrt(area) / 2 * axes.figure.dpi / 72
    return np.column_stack([pixels - radius, pixels + radius])


def _draw_density(axes: Any, points: Array, colors: Array) -> None:
    from .density_image import density_image

    frame = axes.get_window_extent()
    width, height = max(int(frame.width), 1), max(int(frame.height), 1)
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    pixels = (points - [x0, y0]) / [x1 - x0, y1 - y0] * [width, height]
    picture = density_image(pixels, colors, (height, width))
    axes.imshow(picture, extent=(x0, x1, y0, y1), origin="lower", aspect="equal", zorder=2)


def _draw_images(axes: Any, points: Array, images: Array, size: float | None, colors: Array | None) -> Array:
    """Draw the images and return the boxes (m, 4) that they take, in pixels."""
    from .thumbnails import draw_images, usual_side

    extent = float(np.ptp(points, axis=0).max()) or 1.0
    side = usual_side(len(points), extent)
    if size is not None:
        x0, x1 = axes.get_xlim()
        side = size * axes.figure.dpi / 72 * (x1 - x0) / axes.get_window_extent().width
    rows = draw_images(axes, points, images, side, colors)
    corners = (axes.transData.transform(points[rows] + sign * side / 2) for sign in (-1, 1))
    return np.column_stack(list(corners))


def _flat(axes: Any, points: Array) -> Array:
    """Return points as `axes.transData` takes them: those in perspective as they are seen."""
    if axes.name != "3d":
        return points
    from mpl_toolkits.mplot3d.proj3d import proj_transform

    return np.column_stack(proj_transform(*points.T, axes.get_proj())[:2])


def _draw_names(
    axes: Any, places: Array, points: Array, classes: Classes, theme: Theme, note: str, drawn: Array
) -> None:
    left_out = draw_names(axes, _flat(axes, places), _flat(axes, points), classes, theme, drawn)
    if left_out:
        told = f"{left_out} of {len(classes.names)} classes found no room for their names"
        axes.set_xlabel(f"{note}; {told}" if note else told, color=theme.soft)


def _rgb(color: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(color)

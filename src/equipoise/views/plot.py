"""Draw static plots of maps.

Maps in one dimension are drawn as a strip, 3-D ones in perspective, spheres in the Mollweide projection, the torus as a
square, the hyperbolic plane as a disk, and others flat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array
from ..arrays.namespace import is_positive
from ..data.checks.maps import check_map
from .chart_drawing import check_edges, draw_edges, draw_frame, strip_boxes
from .charts import Chart, find_geometry, make_chart
from .class_legend import MAX_DOTS, draw_class_legend
from .coloring import MARKS, color_limits, color_ramp, point_colors, point_marks
from .column import Classes, Column, Numbers, read_column
from .dates import DAY
from .grid import fills_grid
from .labels import class_centers, draw_names
from .style import DARK, LIGHT, Theme, as_text, check_title, hide_axes, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..problems.forces import Problem
    from ..spaces import GraphIsolines, Isolines

MAX_SIZE = 1000  # points; larger than a figure, and much larger ones take minutes to draw
TITLE_ROOM = 0.4  # inches above and below the map for the title and a note
NOTE = "note"  # marks the note among the texts of 3-D axes
FADING = 0.7  # fraction of the background in the colours of repeated points around a torus; chosen
MARGIN = 0.04  # around the map, as a fraction of its larger side; three times that for arrows; chosen


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
    isolines: Isolines | GraphIsolines | None = None,
    geometry: Any = None,
    edges: Any = None,
) -> Figure:
    """Plot a map with matplotlib, with equal axes.

    Above 100,000 points, a flat map is drawn as an image of the density of its points, in their mean colour, unless
    `size` or `images` is given. Maps with more than three dimensions are projected to their first two principal
    components.

    Parameters
    ----------
    Y : array-like of shape (n, d) or fitted method
        The map, or a fitted method with the map in `embedding_`.
    color : array-like of shape (n,), optional
        One value per point. Text and booleans are classes, and so are integers and dates with at most 20 distinct
        values. The names of classes are written near their points or, if at most ten classes mix, in a legend. Other
        numbers and dates are coloured from dark to bright. Missing values are grey. Text is an identifier if its number
        of distinct values exceeds both 200 and half the number of points that have a value; all points then get the
        same colour.
    names : sequence of str, optional
        Names of the classes 0, 1, …, if `color` contains integers.
    title : str, default=""
    dark : bool, default=False
        Use a dark background.
    ax : matplotlib Axes, optional
        Axes to draw on; 3-D maps need 3-D axes, and maps on a sphere need Mollweide axes.
    size : float, optional
        Diameter of a dot, or side of an image, in points of 1/72 inch.
    images : array-like of shape (n, height, width) or (n, height, width, 3), optional
        Grey or RGB images, uint8 or between 0 and 1, drawn instead of dots: as many as fit without overlap, framed in
        the colours of their points if `color` is given; in the cells of `grid_layout`, all images.
    forces : Problem, optional
        Problem whose attraction and repulsion are drawn as arrows at some of the points; 2-D maps only.
    over : array-like of shape (m, d) or fitted method, optional
        The map in which `transform` placed the points of Y. It is drawn in grey, behind the points of Y.
    isolines : Isolines or GraphIsolines, optional
        Result of `spaces.isolines` with the same Y, or of a graph of the same points; drawn over the points, from dark
        to bright with the distance. 2-D maps only, not on a torus.
    geometry : {"plane", "sphere", "torus", "hyperbolic"} or Geometry, optional
        The space of the map; by default that of the fitted method Y or `over`. For the coordinates of a torus pass
        `eq.geometry.Torus(period)`. A torus is cut open where there are the fewest points; arrowheads mark edges that
        meet, and a pale strip around the square repeats its other side. The hyperbolic plane is drawn as the Poincaré
        disk, a sphere in the Mollweide projection.
    edges : array-like of int, shape (m, 2), optional
        Pairs of rows of Y to connect by the shortest paths of the geometry, such as arcs of circles in the disk.

    Returns
    -------
    figure : matplotlib Figure
    """
    space, Y = find_geometry(geometry, Y, over), check_map(Y)
    theme, size = DARK if dark else LIGHT, _check_size(size, title)
    column = _read_color(color, len(Y), names)
    if images is not None:
        from .thumbnails import check_images

        images = check_images(images, len(Y))
    reference = np.empty((0, Y.shape[1])) if over is None else _check_reference(over, Y.shape[1])
    chart = make_chart(np.vstack([reference, Y]), space)
    note, projection = chart.note, chart.projection
    below, points = np.split(chart.points, [len(reference)])
    _check_overlays(Y, forces, isolines, chart)
    pairs = None if edges is None else check_edges(edges, len(Y)) + len(reference)
    if len(reference):
        note = f"{note}{'; ' * bool(note)}grey: the {len(reference):,} points of the original map"
    if isinstance(column, Classes) and column.is_identifier:
        many = f"{as_text(column.name)} has {len(column.names):,} values, too many for colours"
        note, column = f"{note}{'; ' * bool(note)}{many}", None
    if images is not None and projection:
        raise ValueError("images can be drawn only on flat maps, not on 3-D maps or spheres; omit images")
    axes: Any = _new_axes(chart.extent, projection, theme) if ax is None else _check_axes(ax, projection)
    _style_axes(axes, chart.extent, theme, title, note, _margin(points, forces, images))
    if isinstance(column, Numbers):
        _draw_color_bar(axes, column, theme)
    centers = _centers(points, column, chart)
    colors = point_colors(column, len(Y), centers, theme)
    marks = point_marks(column, len(Y), centers)
    legend = forces is None and images is None and draw_class_legend(axes, points, column, colors, marks, theme)
    axes.figure.draw_without_rendering()  # computes the layout, and with it the pixel coordinates
    draw_frame(axes, chart, theme)
    if pairs is not None:
        draw_edges(axes, chart, np.vstack([reference, Y]), pairs, theme)
    if column is None and forces is not None:
        colors[:] = _rgb(theme.muted)
    _draw_reference(axes, below, theme, projection)
    if chart.period is not None and images is None:
        _draw_copies(axes, Chart(points, period=chart.period), colors, size, theme)
    drawn = _draw_points(axes, points, colors, marks, column, size, images)
    _draw_overlays(axes, replace(chart, points=points), Y, forces, isolines, theme)
    if isinstance(column, Classes) and not legend:
        _draw_names(axes, centers, points, column, theme, note, np.vstack([drawn, strip_boxes(axes, chart)]))
    figure: Figure = axes.figure
    return figure


def _read_color(color: Any, n: int, names: Sequence[str] | None) -> Column | None:
    if names is not None and color is None:
        raise ValueError("`names` requires `color`; pass the class of each point as `color`, or omit `names`")
    return None if color is None else read_column(color, n, "color", names)


def _centers(points: Array, column: Column | None, chart: Chart) -> Array:
    """Return the centres of classes; none if the column has no classes."""
    return class_centers(points, column, chart.period) if isinstance(column, Classes) else points[:0]


def _margin(points: Array, forces: Problem | None, images: Array | None) -> float:
    """Return the margin around the map, as a fraction of its larger side; in a grid of images, half a cell or more."""
    if images is not None and fills_grid(points):
        return max(MARGIN, 0.55 / float(np.ptp(points, axis=0).max()))
    return MARGIN if forces is None else 3 * MARGIN


def _draw_points(
    axes: Any, points: Array, colors: Array, marks: Array, column: Column | None, size: float | None, images: Any
) -> Array:
    """Draw images, a density or dots, and return the boxes (m, 4) in pixels that names should avoid."""
    if images is not None:
        from .thumbnails import draw_images

        return draw_images(axes, points, images, size, None if column is None else colors)
    if len(points) > MAX_DOTS and axes.name == "rectilinear" and size is None:
        _draw_density(axes, points, colors)
        return np.empty((0, 4))  # names may cover points: with this many, a few hidden ones do not matter
    return _draw_dots(axes, points, colors, column, size, marks)


def _draw_overlays(axes: Any, chart: Chart, Y: Array, forces: Problem | None, isolines: Any, theme: Theme) -> None:
    """Draw the arrows of forces and the isolines, if there are any."""
    if forces is not None:
        from .arrows import draw_forces

        draw_forces(axes, chart, Y, forces, theme)
    if isolines is not None:
        from .isoline_drawing import draw_isolines

        draw_isolines(axes, isolines, chart.points, theme)


def _check_overlays(Y: Array, forces: Problem | None, isolines: Any, chart: Chart) -> None:
    """Raise ValueError unless the map Y is 2-D if there are forces or isolines, and the isolines are those of Y."""
    if isolines is not None and chart.period is not None:
        raise ValueError("`isolines` are lines in the plane and cannot be drawn on a torus; omit `isolines`")
    if forces is not None and Y.shape[1] != 2:
        raise ValueError(f"`forces` can be drawn only on a 2-D map, but Y is {Y.shape[1]}-D; omit `forces`")
    if isolines is None:
        return
    if Y.shape[1] != 2:
        raise ValueError(f"`isolines` can be drawn only on a 2-D map, but Y is {Y.shape[1]}-D; omit `isolines`")
    if not hasattr(isolines, "values"):
        raise ValueError(f"`isolines` must be a result of spaces.isolines, not {isolines!r}; use isolines(…, Y=Y)")
    if len(isolines.values) != len(Y):
        raise ValueError(
            f"`isolines` is for {len(isolines.values):,} points, but Y has {len(Y):,}; use the same points"
        )
    drawn = getattr(isolines, "lines", None)
    if drawn is not None and not np.array_equal(isolines.positions, Y):
        raise ValueError("`isolines` was computed for other positions; pass the same Y to spaces.isolines")


def _check_reference(over: Any, d: int) -> Array:
    """Return the map `over`, which must have d dimensions."""
    reference = check_map(over, "over")
    if reference.shape[1] != d:
        raise ValueError(
            f"Y is {d}-D, but the map passed as `over` is {reference.shape[1]}-D; pass the map in which Y was placed"
        )
    return reference


def _new_axes(points: Array, projection: str | None, theme: Theme) -> Any:
    width, height = np.ptp(points, axis=0)[:2]
    shape = (8.0, 4.5) if projection == "mollweide" else (7.0, 7.0)
    if projection is None and width > 0:
        shape = (7.0, float(np.clip(7 * height / width + TITLE_ROOM, 2.2, 9.0)))
    figure = new_figure(figsize=shape, dpi=150, facecolor=theme.background)
    return figure.add_subplot(projection=projection)


def _check_axes(axes: Any, projection: str | None) -> Any:
    """Return the user's axes after checking their projection."""
    kind = "rectilinear" if projection is None else projection
    if axes.name != kind:
        raise ValueError(
            f"this map needs axes with projection={kind!r}, but ax has {axes.name!r}; create such axes or omit ax"
        )
    return axes


def _style_axes(axes: Any, points: Array, theme: Theme, title: str, note: str, margin: float) -> None:
    """Set colours, title, note and limits."""
    axes.set_facecolor(theme.background)
    axes.set_title(as_text(title or ""), color=theme.text, parse_math=False)
    if axes.name == "mollweide":
        _write_note(axes, note, theme)
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
            axis.set_pane_color(theme.background)
            axis.set_ticklabels([])
            axis.line.set_color(theme.missing)
            axis.set_tick_params(color=theme.missing)
        _write_note(axes, note, theme)
        return
    hide_axes(axes)
    axes.set_aspect("equal", adjustable="box")
    _write_note(axes, note, theme)


def _write_note(axes: Any, note: str, theme: Theme) -> None:
    """Write a note below the map, instead of an earlier note."""
    if axes.name != "3d":
        axes.set_xlabel(note, color=theme.muted, parse_math=False)
        return
    for text in [text for text in axes.texts if text.get_label() == NOTE]:
        text.remove()
    if note:  # the label of an axis would follow that axis
        style = {"ha": "center", "color": theme.muted, "parse_math": False, "label": NOTE}
        axes.text2D(0.5, 0, note, transform=axes.transAxes, **style)


def _draw_color_bar(axes: Any, numbers: Numbers, theme: Theme) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    low, high = color_limits(numbers)
    known = numbers.values[np.isfinite(numbers.values)]
    below, above = bool((known < low).any()), bool((known > high).any())
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max"}.get((below, above), "both")
    unit = DAY if numbers.dates else 1.0  # matplotlib counts days
    scale = ScalarMappable(Normalize(low / unit, high / unit), ListedColormap(color_ramp(theme)))
    bar = axes.figure.colorbar(scale, ax=axes, shrink=0.6, aspect=30, pad=0.02, extend=extend)
    if numbers.dates:
        bar.locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        bar.formatter = ConciseDateFormatter(bar.locator)  # type: ignore[no-untyped-call]
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=theme.text)
    if numbers.name != "color":
        bar.set_label(as_text(numbers.name), color=theme.text, parse_math=False)


def _draw_reference(axes: Any, points: Array, theme: Theme, projection: str | None) -> None:
    """Draw the points of the original map as small grey dots."""
    colors = np.tile(_rgb(theme.missing), (len(points), 1))
    if len(points) > MAX_DOTS and not projection:
        _draw_density(axes, points, colors)
    elif len(points):
        _draw_dots(axes, points, colors, None, float(np.sqrt(np.clip(6000 / len(points), 1.0, 12.0))))


def _check_size(size: Any, title: Any) -> float | None:
    check_title(title)
    if not (size is None or (is_positive(size) and size <= MAX_SIZE)):
        raise ValueError(f"size must be a positive number up to {MAX_SIZE}, in points of 1/72 inch, got {size!r}")
    return None if size is None else float(size)


def _dot_size(axes: Any, n: int) -> float:
    """Return the diameter of each of n dots, in points."""
    width = axes.get_window_extent().width / axes.figure.dpi  # inches
    return float(np.sqrt(np.clip(12000 / n, 1.0, 24.0) * min(width / 7, 1.0)))


def _draw_copies(axes: Any, chart: Chart, colors: Array, size: float | None, theme: Theme) -> None:
    """Draw the points in the strip around the square of a torus, in pale colours."""
    rows, copies = chart.copies()
    pale = (1 - FADING) * colors[rows] + FADING * np.array(_rgb(theme.background))
    if len(colors) > MAX_DOTS and size is None:
        _draw_density(axes, copies, pale)
    elif len(rows):
        _draw_dots(axes, copies, pale, None, size or _dot_size(axes, len(colors)))


def _draw_dots(
    axes: Any, points: Array, colors: Array, column: Column | None, size: float | None, marks: Array | None = None
) -> Array:
    """Draw the dots, by default disks, and return their bounding boxes (n, 4) in pixels."""
    n = len(points)
    area = (_dot_size(axes, n) if size is None else size) ** 2
    order = np.random.RandomState(0).permutation(n)  # keeps the last class from covering the others
    if column is not None:  # missing values at the bottom
        missing = column.codes < 0 if isinstance(column, Classes) else np.isnan(column.values)
        order = order[np.argsort(~missing[order], kind="stable")]
    style = {"s": area, "linewidths": 0, "zorder": 2, "rasterized": n > 10_000}
    for mark in [0] if marks is None else np.unique(marks):
        rows = order if marks is None else order[marks[order] == mark]
        axes.scatter(*points[rows].T, c=colors[rows], marker=MARKS[mark], **style)
    pixels, radius = axes.transData.transform(_to_2d(axes, points)), np.sqrt(area) / 2 * axes.figure.dpi / 72
    return np.column_stack([pixels - radius, pixels + radius])


def _draw_density(axes: Any, points: Array, colors: Array) -> None:
    from .density_image import density_image

    frame = axes.get_window_extent()
    width, height = max(int(frame.width), 1), max(int(frame.height), 1)
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    pixels = (points - [x0, y0]) / [x1 - x0, y1 - y0] * [width, height]
    image = density_image(pixels, colors, (height, width))
    axes.imshow(image, extent=(x0, x1, y0, y1), origin="lower", aspect="equal", zorder=2)


def _to_2d(axes: Any, points: Array) -> Array:
    """Return points in the coordinates of `axes.transData`; on 3-D axes these are the projected points."""
    if axes.name != "3d":
        return points
    from mpl_toolkits.mplot3d.proj3d import proj_transform

    return np.column_stack(proj_transform(*points.T, axes.get_proj())[:2])


def _draw_names(
    axes: Any, centers: Array, points: Array, classes: Classes, theme: Theme, note: str, drawn: Array
) -> None:
    """Draw the class names. If some did not fit, add their number to the note below the map."""
    left_out = draw_names(axes, _to_2d(axes, centers), _to_2d(axes, points), classes, theme, drawn)
    if left_out:
        missing = f"{left_out:,} of {len(classes.names):,} class names did not fit"
        _write_note(axes, f"{note}; {missing}" if note else missing, theme)


def _rgb(color: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(color)

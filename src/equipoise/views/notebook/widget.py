"""Make the widget of a map: an interactive scatter plot in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._optional import import_optional
from ...data.checks.maps import check_map
from ..charts import find_geometry
from ..column import Column, read_column
from ..style import check_title
from ..table_columns import choose_color, read_columns
from ..thumbnails import check_images

if TYPE_CHECKING:
    from .map_widget import MapWidget

HEIGHTS = (200, 2000)  # pixels


def widget(
    Y: Any = None,
    data: Any = None,
    *,
    color: Any = None,
    labels: Any = None,
    names: Sequence[str] | None = None,
    images: Any = None,
    title: str = "",
    dark: bool | None = None,
    geometry: Any = None,
    height: int = 480,
) -> MapWidget:
    """Return an interactive map for notebooks, tested in JupyterLab.

    The points are drawn with WebGL 2. Drag to move the map, click it and turn the wheel to zoom, hover to see values,
    draw a lasso or a box to select, and search. `selection` holds the selected rows as an int64 array; it can be set
    from Python, and `observe(f, "selection")` calls f when it changes. `link` shares the selection among maps.
    A widget is a callback: a method with `callbacks=[widget]` shows its map while it is fitted.

    Parameters
    ----------
    Y : array-like of shape (n, d) or fitted method, optional
        The map, or a fitted method with the map in `embedding_`. If omitted, the widget is empty until a fit has it
        among its `callbacks`, or until `update`; the number of points is then that of the first other argument.
    data : data frame, mapping of str to array-like of shape (n,), or array of shape (n, columns), optional
        Columns to show for a point, to search, to export and to colour by.
    color : array-like of shape (n,) or str, optional
        One value per point, as in `plot`, or the name of a column of `data`.
    labels : array-like of shape (n,), optional
        The name of each point, shown first and searched, as the column "label"; a column of `data` with this name is
        then called "label_".
    names : sequence of str, optional
        Names of the classes 0, 1, …, if `color` contains integers.
    images : array-like of shape (n, height, width) or (n, height, width, 3), optional
        Grey or RGB images, uint8 or between 0 and 1, shown for the point under the mouse.
    title : str, default=""
    dark : bool, optional
        Whether the background is dark; by default as in the notebook.
    geometry : {"plane", "sphere", "torus", "hyperbolic"} or Geometry, optional
        The space of the map, as in `page`; by default that of the fitted method Y.
    height : int, default=480
        Height of the map in pixels.

    Returns
    -------
    widget : MapWidget

    Examples
    --------
    >>> w = eq.widget(model, data=table, color="species")
    >>> w                                      # shows it
    >>> table.iloc[w.selection]                # in another cell, after drawing a lasso
    """
    import_optional("anywidget", "notebook", "widget()")
    from .map_widget import MapWidget

    check_title(title)
    if not (dark is None or isinstance(dark, bool | np.bool_)):
        raise ValueError(f"dark must be True, False or None, got {dark!r}")
    if isinstance(height, bool) or not isinstance(height, int | np.integer) or not HEIGHTS[0] <= height <= HEIGHTS[1]:
        raise ValueError(f"height must be an integer from {HEIGHTS[0]} to {HEIGHTS[1]} pixels, got {height!r}")
    space, data = find_geometry(geometry, Y), _as_table(data)
    Y = None if Y is None else check_map(Y)
    n = _count_points(Y, data, {"color": color, "labels": labels, "images": images})
    columns = read_columns(data, n, "data")
    columns, color_index = choose_color(color, names, columns, data, n, "data")
    if labels is not None:
        columns = _rename(columns, "label")
    chosen = list(columns)[color_index] if color_index >= 0 else None
    if labels is not None:
        columns = {"label": read_column(list(map(str, labels)), n, "labels")} | columns
    return MapWidget(
        n,
        columns,
        Y=Y,
        space=space,
        images=None if images is None else check_images(images, n),
        look={"color": chosen, "_title": title, "_dark": None if dark is None else bool(dark), "_height": int(height)},
    )


def _as_table(data: Any) -> Any:
    """Return the columns of a two-dimensional array as a dict; other tables as they are."""
    if not isinstance(data, np.ndarray):
        return data
    if data.ndim != 2:
        raise ValueError(f"data must be two-dimensional if it is an array, got shape {data.shape}")
    return {f"column {j}": data[:, j] for j in range(data.shape[1])}


def _rename(columns: dict[str, Column], name: str) -> dict[str, Column]:
    """Return the columns in the same order; the one of this name, if any, gets underscores appended."""
    free = name
    while free in columns:
        free += "_"
    renamed = ((key, column) if key != name else (free, replace(column, name=free)) for key, column in columns.items())
    return dict(renamed)


def _count_points(Y: Any, data: Any, values: dict[str, Any]) -> int:
    """Return the number of points: that of Y, otherwise of a column of the table, otherwise of other values."""
    if Y is not None:
        return len(Y)
    if data is not None:
        keys = list(data.keys() if hasattr(data, "keys") else getattr(data, "columns", []))
        if keys:
            return len(data[keys[0]])
    known = [value for value in values.values() if value is not None and not isinstance(value, str)]
    if not known:
        raise ValueError("widget() needs Y, or without a map yet, data with a row for each point that will be in it")
    return len(known[0])

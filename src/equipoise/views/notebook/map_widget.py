"""The widget of a map: its state, shared with the browser through traits."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import traitlets
from anywidget import AnyWidget

from ..._atomic import atomic_write
from ..._names import suggest_column
from ..._suggest import described
from ..._types import Array
from ...data.checks.maps import check_map
from ...data.write import map_names, write_columns
from ..charts import find_geometry, make_flat_chart
from ..coloring import theme_colors
from ..column import MAX_CLASSES, Classes, Column
from ..inline import read_script, read_text
from ..style import THEMES, dot_size
from .cell_texts import cell_text, column_cells, find_rows
from .color_codes import class_positions, color_codes, legend_facts
from .row_set import RowSet, rows_from_bytes, rows_to_bytes

SCRIPTS = ("viewport", "map_canvas", "pointer", "controls", "tooltip", "notebook_theme", "render")  # in this order
MAX_SHOWN = 20  # columns in a tooltip; chosen
WIRE = {"sync": True, "to_json": rows_to_bytes, "from_json": rows_from_bytes, "echo_update": False}


def _script() -> str:
    shared = [read_script("elements"), read_script("dots")]
    return "".join([*shared, *(read_script(name, __package__) for name in SCRIPTS)])


class MapWidget(AnyWidget):  # type: ignore[misc]  # anywidget is optional
    """A map in a notebook, made by `widget`.

    Attributes
    ----------
    selection : ndarray of int64
        Selected rows, ascending. Set it to row numbers or a boolean mask; `observe(f, "selection")` calls f on changes.
    color : str or None
        Name of the column that colours the points; can be set.
    search : str
        The text searched for; can be set.
    found : ndarray of int64
        Rows that match the search.
    hovered : int
        Row of the point under the mouse, −1 for none.
    Y : ndarray of shape (n, d) or None
        The map shown.
    n_points : int
        Number of points.
    """

    _esm = _script()
    _css = read_text("widget.css", __package__)

    selection = RowSet().tag(**WIRE)
    found = RowSet().tag(**WIRE)
    color = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    search = traitlets.Unicode().tag(sync=True)
    hovered = traitlets.Int(-1).tag(sync=True)
    _n = traitlets.Int().tag(sync=True)
    _positions = traitlets.Bytes().tag(sync=True)  # float32, x and y of each point
    _codes = traitlets.Bytes().tag(sync=True)  # see `color_codes`
    _legend = traitlets.Dict().tag(sync=True)
    _classes = traitlets.Dict().tag(sync=True)  # see `class_positions`
    _columns: Any = traitlets.List().tag(sync=True)  # names of the columns that can colour the points
    _cells = traitlets.Dict().tag(sync=True)  # what the tooltip of the point under the mouse says
    _status = traitlets.Unicode().tag(sync=True)
    _note = traitlets.Unicode().tag(sync=True)
    _title = traitlets.Unicode().tag(sync=True)
    _dark = traitlets.Bool(None, allow_none=True).tag(sync=True)
    _height = traitlets.Int().tag(sync=True)
    _dot_size = traitlets.Float().tag(sync=True)
    _themes = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        n: int,
        columns: dict[str, Column],
        *,
        Y: Array | None,
        space: Any,
        images: Array | None,
        look: dict[str, Any],
    ):
        self.n_points, self._table, self._images = n, columns, images
        self._space = space
        self._linked: list[MapWidget] = []
        self.Y: Array | None = None
        self._chosen = look["color"]
        super().__init__(
            _n=n,
            _columns=[name for name, column in columns.items() if self._can_color(column)],
            _dot_size=dot_size(n),
            _themes={key: theme_colors(theme) for key, theme in THEMES.items()},
            **look,
        )
        if self.color is None:
            self._encode_color()
        self.on_msg(self._answer)
        if Y is not None:
            self._show(Y)

    def update(self, Y: Any) -> None:
        """Show another map of the same points.

        Parameters
        ----------
        Y : array-like of shape (n, d) or fitted method
        """
        space = find_geometry(None, Y)
        self._space = self._space if space is None else space
        self._show(check_map(Y))

    def __call__(self, iteration: int, loss: float, Y: Array) -> None:
        """Show the map of a running fit; for the `callbacks` of a method."""
        self._show(Y, f"iteration {iteration:,}, loss {loss:.4g}")

    def __deepcopy__(self, memo: Any) -> MapWidget:
        return self  # a clone of a method that has the widget among its callbacks shows its map in the same widget

    def link(self, *others: MapWidget) -> None:
        """Share the selection with other widgets of the same points; they take the selection of this one.

        Parameters
        ----------
        *others : MapWidget
        """
        for other in others:
            if not isinstance(other, MapWidget):
                raise TypeError(f"link() needs widgets made by eq.widget, got {described(other)}")
            if other is self:
                raise ValueError("a widget cannot be linked with itself; pass the other widgets, as in w1.link(w2)")
            if other.n_points != self.n_points:
                raise ValueError(
                    f"the widgets have {self.n_points:,} and {other.n_points:,} points; only maps of the same"
                    " points can be linked"
                )
        for other in others:
            if other not in self._linked:
                self._linked.append(other)
                other._linked.append(self)
            other.selection = self.selection

    def unlink(self, *others: MapWidget) -> None:
        """Stop sharing the selection with other widgets, or with all if none is given."""
        for other in others or tuple(self._linked):
            if other in self._linked:
                self._linked.remove(other)
                other._linked.remove(self)

    def to_png(self, path: str | Path | None = None, *, dark: bool = False) -> bytes:
        """Return the map as a PNG drawn by `plot` in the colours of the widget; write it if `path` is given.

        Parameters
        ----------
        path : str or Path, optional
        dark : bool, default=False
            Use a dark background.
        """
        from ..plot import plot

        if self.Y is None:
            raise ValueError("the widget has no map yet; fit a method with callbacks=[widget], or call update(Y)")
        figure = plot(self.Y, self._colored_by(), title=self._title, dark=dark, geometry=self._space)
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=100)
        return _write(data.getvalue(), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the selected points as CSV: row, coordinates and columns; write it if `path` is given.

        Parameters
        ----------
        path : str or Path, optional
        """
        rows = self.selection
        Y = np.empty((self.n_points, 0)) if self.Y is None else self.Y
        columns = {"row": rows} | {name: Y[rows, c] for c, name in enumerate(map_names(Y))}
        for name, column in self._table.items():
            while name in columns:
                name += "_"
            columns[name] = column_cells(column, rows)
        data = io.BytesIO()
        write_columns(data, columns, ",")
        return _write(data.getvalue(), path).decode()

    def _show(self, Y: Array, status: str = "") -> None:
        if len(Y) != self.n_points:
            raise ValueError(
                f"the map has {len(Y):,} points, but the widget was made for {self.n_points:,}; make another widget"
            )
        chart = make_flat_chart(Y, self._space)
        points = chart.points[:, :2]
        with self.hold_sync():
            self.Y, self._status, self._note = Y, status, chart.note
            self._positions = points.astype("<f4").tobytes()
            self._classes = class_positions(self._colored_by(), points)

    def _encode_color(self) -> None:
        column = self._colored_by()
        with self.hold_sync():
            self._codes = color_codes(column, self.n_points).tobytes()
            self._legend = legend_facts(column)
            if self.Y is not None:
                self._classes = class_positions(column, make_flat_chart(self.Y, self._space).points[:, :2])

    def _colored_by(self) -> Column | None:
        """Return the column that colours the points."""
        return None if self.color is None else self._table[self.color]

    def _can_color(self, column: Column) -> bool:
        """Return whether a column can colour the points: it has few classes, or was passed as `color`."""
        if not isinstance(column, Classes):
            return True
        return not column.is_identifier and (len(column.names) <= MAX_CLASSES or column.name == self._chosen)

    @traitlets.validate("color")
    def _check_color(self, proposal: Any) -> str | None:
        name = proposal["value"] or None
        if name is not None and name not in self._columns:
            column = self._table.get(name)
            if isinstance(column, Classes):
                count = len(column.names)
                raise ValueError(f"the column {name!r} has {count:,} different values, too many for colours")
            raise ValueError(
                f"color={name!r} is not a column of the widget; {suggest_column(name, list(self._columns))}"
            )
        return name

    @traitlets.observe("color")
    def _on_color(self, change: Any) -> None:
        self._encode_color()

    @traitlets.observe("search")
    def _on_search(self, change: Any) -> None:
        self.found = find_rows(change.new, self._table.values(), self.n_points)

    @traitlets.observe("selection")
    def _on_selection(self, change: Any) -> None:
        for other in self._linked:
            other.selection = change.new

    @traitlets.observe("hovered")
    def _on_hovered(self, change: Any) -> None:
        row = change.new
        if not 0 <= row < self.n_points:
            return
        first = [self.color] if self.color else []
        names = [*first, *(name for name in self._table if name != self.color)]
        if "label" in names:
            names.insert(0, names.pop(names.index("label")))
        values = [[name, cell_text(self._table[name], row)] for name in names[:MAX_SHOWN]]
        self._cells = {"row": row, "values": values, "more": len(names[MAX_SHOWN:]), "image": self._image(row)}

    def _image(self, row: int) -> dict[str, Any] | None:
        if self._images is None:
            return None
        image = self._images[row]
        rgb = np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image
        height, width = rgb.shape[:2]
        return {"width": width, "height": height, "pixels": base64.b64encode(rgb.tobytes()).decode()}

    def _answer(self, _: Any, content: Any, buffers: Any) -> None:
        """Answer a message of the browser, which asks for the selection as CSV."""
        if isinstance(content, dict) and content.get("kind") == "csv":
            self.send({"kind": "csv", "id": content.get("id"), "text": self.to_csv()})

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is not None and self.Y is not None:
            bundle[0]["image/png"] = base64.b64encode(self.to_png(dark=bool(self._dark))).decode()
        return bundle

    def __repr__(self) -> str:
        return f"<widget of {self.n_points:,} points, {len(self.selection):,} selected>"


def _write(data: bytes, path: str | Path | None) -> bytes:
    if path is not None:
        with atomic_write(path) as file:
            file.write(data)
    return data

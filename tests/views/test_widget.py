"""The widget in Python: its selection, columns, search, links, pictures and errors; no browser."""

import copy
import csv
import io

import numpy as np
import pytest
from matplotlib.image import imread
from sklearn.base import clone

pytest.importorskip("anywidget", reason="the widget needs anywidget")

import equipoise as eq
from equipoise.views.column import read_column
from equipoise.views.notebook.cell_texts import cell_text, find_rows
from equipoise.views.notebook.color_codes import color_codes, legend_facts

N = 60
Y = np.random.RandomState(0).normal(size=(N, 2))
CLASSES = np.array(["apple", "Pear", "plum"])[np.arange(N) % 3]
TABLE = {"fruit": CLASSES, "weight": np.linspace(0, 1, N), "count": np.arange(N) * 10}


def test_selection_is_a_sorted_array_of_rows_and_can_be_set():
    widget = eq.widget(Y)
    seen = []
    widget.observe(lambda change: seen.append(change.new), "selection")
    assert widget.selection.dtype == np.int64 and len(widget.selection) == 0
    widget.selection = [5, 2, 5]
    widget.selection = np.array([2, 5], np.int32)  # the same rows: observers are not called again
    widget.selection = CLASSES == "plum"
    widget.selection = []
    assert [rows.tolist() for rows in seen] == [[2, 5], list(range(2, N, 3)), []]
    with pytest.raises(ValueError, match="read-only"):
        seen[0][0] = 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, N], "selection contains the row 60, but the rows of the map are 0 to 59"),
        ([-1], "selection contains the row -1"),
        ([[1, 2]], "one-dimensional array of row numbers or a boolean mask, got int64 of shape"),
        ([0.5], "got float64"),
        ([True, False], "a mask for selection must have one value for each of the 60 points, got 2"),
    ],
)
def test_wrong_selections_are_refused(rows, message):
    widget = eq.widget(Y)
    with pytest.raises(ValueError, match=message):
        widget.selection = rows
    assert len(widget.selection) == 0


def test_selection_of_the_browser_arrives_as_int64():
    widget = eq.widget(Y)
    widget.set_state({"selection": memoryview(np.array([3, 8], "<u4").tobytes())})
    assert widget.selection.dtype == np.int64 and widget.selection.tolist() == [3, 8]
    assert widget.get_state("selection")["selection"] == np.array([3, 8], "<u4").tobytes()


def test_positions_are_the_map_in_float32():
    method = eq.PCA().fit(np.random.RandomState(1).normal(size=(N, 5)))
    widget = eq.widget(method)
    sent = np.frombuffer(widget.get_state()["_positions"], "<f4").reshape(N, 2)
    np.testing.assert_array_equal(sent, method.embedding_.astype(np.float32))
    np.testing.assert_array_equal(widget.Y, method.embedding_)
    widget.update(Y)
    np.testing.assert_array_equal(np.frombuffer(widget._positions, "<f4").reshape(N, 2), Y.astype(np.float32))


def test_color_codes_say_class_and_step_and_missing():
    fruit = read_column(np.array(["b", "a", None, "b"], dtype=object), 4, "fruit")
    assert color_codes(fruit, 4).tolist() == [1, 0, 255, 1]
    assert legend_facts(fruit) == {"kind": "class", "name": "fruit", "names": ["a", "b"], "sizes": [1, 2]}
    many = read_column(np.array([f"c{i}" for i in range(300)] * 2 + [None], dtype=object), 601, "many")
    codes = color_codes(many, 601)
    assert codes.dtype == np.uint16 and codes.max() == 2**16 - 1 and codes[299] == 299
    weight = read_column(np.array([0.0, 0.5, 1.0, np.nan]), 4, "weight")
    low, middle, high, missing = color_codes(weight, 4).tolist()
    assert low == 0 and middle in (127, 128) and high == 254 and missing == 255
    assert legend_facts(None) == {"kind": "none"} and color_codes(None, 2).tolist() == [0, 0]


def test_color_can_be_changed_to_another_column():
    widget = eq.widget(Y, TABLE, color="fruit")
    assert widget.color == "fruit" and len(widget._codes) == N and len(widget._classes["centers"]) == 3
    widget.color = "weight"
    assert widget._legend["kind"] == "number" and widget._classes["centers"] == []
    widget.color = None
    assert widget._legend == {"kind": "none"} and set(widget._codes) == {0}
    with pytest.raises(ValueError, match="color='fuit' is not a column of the widget; did you mean 'fruit'"):
        widget.color = "fuit"


def test_values_and_names_color_the_points():
    widget = eq.widget(Y, color=np.arange(N) % 2, names=["even", "odd"], labels=range(N))
    assert widget.color == "class" and widget._legend["names"] == ["even", "odd"]
    table = {"kind": np.arange(N) % 2}
    assert eq.widget(Y, table, color="kind", names=["even", "odd"])._legend["names"] == ["even", "odd"]
    widget = eq.widget(Y, np.column_stack([Y, Y]), color="column 3")
    assert widget._columns == ["column 0", "column 1", "column 2", "column 3"]


def test_a_column_named_label_is_kept_beside_the_labels():
    widget = eq.widget(Y, {"label": CLASSES, "weight": TABLE["weight"]}, color="label", labels=range(N))
    assert widget.color == "label_" and widget._legend["names"] == ["Pear", "apple", "plum"]
    assert {"label_", "weight"} <= set(widget._columns)
    widget.search = "plum"
    assert widget.found.tolist() == list(range(2, N, 3))


def test_identifiers_cannot_color_the_points():
    ids = [f"id{i}" for i in range(500)]
    widget = eq.widget(np.zeros((500, 2)), {"id": ids})
    assert widget._columns == []
    with pytest.raises(ValueError, match="'id' has 500 different values, too many for colours"):
        widget.color = "id"


def test_search_finds_rows_text_numbers_and_dates():
    dates = np.datetime64("2024-01-30") + np.arange(N)
    widget = eq.widget(Y, TABLE | {"day": dates}, labels=[f"point {i}" for i in range(N)])

    def found(text):
        widget.search = text
        return widget.found.tolist()

    assert found(" PEAR ") == np.flatnonzero(CLASSES == "Pear").tolist()
    assert found("170") == [17] and found("0.016949") == [1]
    assert found("point 59") == [59] and found("nothing") == [] and found("") == []
    assert found("2024-01") == [0, 1] and found("2024-02-01") == [2]
    column = read_column(np.array([0.016949152, 0.016952]), 2, "value")
    assert find_rows("0.016949", [column], 2).tolist() == [0]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1.23456789, np.nan], ["1.2346", ""]),
        (np.arange(30) * 1000, ["0", "1000"]),
        (np.datetime64("2024-05-31T12:00:00") + np.arange(30), ["2024-05-31 12:00:00", "2024-05-31 12:00:01"]),
        (np.datetime64("2024-05-31") + np.arange(30), ["2024-05-31", "2024-06-01"]),
        (["a", None], ["a", ""]),
    ],
)
def test_cells_show_values_as_text(values, texts):
    values = np.array(values, dtype=object) if isinstance(values[0], str) else np.asarray(values)
    column = read_column(values, len(values), "x")
    assert [cell_text(column, row) for row in range(2)] == texts


def test_hovering_asks_for_the_values_of_a_row():
    images = np.arange(N * 12).reshape(N, 3, 4) / (12 * N)
    widget = eq.widget(Y, TABLE, labels=[f"p{i}" for i in range(N)], color="weight", images=images)
    widget.set_state({"hovered": 4})
    cells = widget._cells
    assert cells["values"] == [["label", "p4"], ["weight", "0.067797"], ["fruit", "Pear"], ["count", "40"]]
    assert (cells["image"]["width"], cells["image"]["height"], cells["more"]) == (4, 3, 0)
    widget.hovered = -1
    assert widget._cells is cells
    wide = eq.widget(Y, np.zeros((N, 25)))
    wide.hovered = 0
    assert len(wide._cells["values"]) == 20 and wide._cells["more"] == 5


def test_linked_widgets_share_their_selection():
    first, second, third = (eq.widget(Y) for _ in range(3))
    first.selection = [1]
    first.link(second, third)
    first.link(second)
    assert second.selection.tolist() == third.selection.tolist() == [1]
    third.selection = [2, 3]
    assert first.selection.tolist() == second.selection.tolist() == [2, 3]
    first.unlink(third)
    third.selection = []
    second.selection = [9]
    assert (first.selection.tolist(), third.selection.tolist()) == ([9], [])
    with pytest.raises(ValueError, match="have 60 and 30 points; only maps of the same points"):
        first.link(eq.widget(Y[:30]))
    with pytest.raises(TypeError, match=r"link\(\) needs widgets made by eq.widget, got 3"):
        first.link(3)
    with pytest.raises(ValueError, match="cannot be linked with itself; pass the other widgets"):
        first.link(first)


def test_widget_shows_a_running_fit():
    X = np.random.RandomState(2).normal(size=(N, 4))
    widget = eq.widget(data=TABLE, color="fruit")
    seen = []
    widget.observe(lambda change: seen.append(change.new), "_status")
    method = eq.TSNE(perplexity=10, n_iter=120, random_state=0, callbacks=[widget]).fit(X)
    alone = eq.TSNE(perplexity=10, n_iter=120, random_state=0).fit(X)
    assert [text.split(",")[0] for text in seen] == ["iteration 0", "iteration 50", "iteration 100", "iteration 120"]
    np.testing.assert_array_equal(widget.Y, method.embedding_)
    np.testing.assert_array_equal(alone.embedding_, method.embedding_)  # watching changes nothing
    widget.update(method)
    assert widget._status == ""
    assert clone(method).callbacks[0] is widget and copy.deepcopy(widget) is widget
    with pytest.raises(ValueError, match="the map has 30 points, but the widget was made for 60"):
        widget.update(Y[:30])


def test_saved_notebooks_have_a_picture(tmp_path):
    widget = eq.widget(Y, TABLE, color="fruit", title="fruit", dark=True)
    data, _ = widget._repr_mimebundle_()
    assert set(data) == {"text/plain", "application/vnd.jupyter.widget-view+json", "image/png"}
    assert data["text/plain"] == "<widget of 60 points, 0 selected>"
    picture = widget.to_png(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes() == picture
    pixels = imread(io.BytesIO(picture))[..., :3]
    assert pixels.shape[1] >= 400 and len(np.unique((10 * pixels).round().reshape(-1, 3), axis=0)) > 10
    empty = eq.widget(data=TABLE)
    assert "image/png" not in empty._repr_mimebundle_()[0]
    with pytest.raises(ValueError, match=r"no map yet; fit a method with callbacks=\[widget\], or call update"):
        empty.to_png()


def test_selection_is_exported_as_csv(tmp_path):
    table = TABLE | {"note": ["=1+1"] * N, "y1": np.arange(N) + 0.5}
    widget = eq.widget(Y, table)
    widget.selection = [3, 10]
    text = widget.to_csv(tmp_path / "selection.csv")
    assert (tmp_path / "selection.csv").read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["row", "y1", "y2", "fruit", "weight", "count", "note", "y1_"]
    assert [row["row"] for row in rows] == ["3", "10"] and rows[1]["fruit"] == "Pear" and rows[1]["count"] == "100"
    assert [float(row["y2"]) for row in rows] == Y[[3, 10], 1].tolist() and rows[0]["note"] == "'=1+1"
    sent = []
    widget.send = sent.append
    widget._handle_custom_msg({"kind": "csv", "id": 7}, [])
    assert sent == [{"kind": "csv", "id": 7, "text": text}]
    widget.selection = []
    assert widget.to_csv().count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"widget\(\) needs Y, or without a map yet, data"),
        ({"Y": Y, "dark": "yes"}, "dark must be True, False or None, got 'yes'"),
        ({"Y": Y, "height": 10}, "height must be an integer from 200 to 2000 pixels, got 10"),
        ({"Y": Y, "data": 3}, "data must be a data frame or a mapping of names to values, got int"),
        ({"Y": Y, "data": np.zeros(3)}, "data must be two-dimensional if it is an array"),
        (
            {"Y": Y, "data": TABLE, "color": "kind"},
            "'kind' is not a column of the table; the columns are 'fruit', 'weight'",
        ),
        ({"Y": Y, "data": {"a": [1, 2]}}, r"data\['a'\] must have shape \(60,\)"),
        ({"Y": Y, "labels": ["a"]}, r"labels must have shape \(60,\)"),
        ({"Y": eq.PCA()}, "PCA, which is not fitted"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        eq.widget(**arguments)


def test_curved_and_high_dimensional_maps_are_drawn_in_the_plane():
    rng = np.random.RandomState(3)
    sphere = rng.normal(size=(N, 3))
    widget = eq.widget(sphere / np.linalg.norm(sphere, axis=1, keepdims=True), geometry="sphere")
    assert len(widget._positions) == 8 * N and "sphere" in widget._note
    assert "principal components" in eq.widget(rng.normal(size=(N, 4)))._note

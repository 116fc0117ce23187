"""`equipoise plot` with columns that only the data of a map have."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from support.command_line import one_line_error

from equipoise.cli import main
from equipoise.cli.pictures import Drawing
from equipoise.views.style import LIGHT


@pytest.fixture
def plot(tmp_path, monkeypatch):
    """Return a function that runs `equipoise plot` on a map of four points, in a temporary folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.csv").write_text("y1,y2,class\n0,0,a\n0,1,b\n1,0,a\n1,1,b\n")
    return lambda *words: main(["plot", "m.csv", *words])


def test_unknown_color_names_the_ways_to_colour_by_the_data(plot, tmp_path, capsys):
    assert plot("--color", "weight") == 2
    message = one_line_error(capsys)
    assert "m.csv has no column 'weight'; the columns are 'class', 'y1', 'y2'. To colour by a column of the" in message
    assert message.rstrip().endswith("data, pass the data with --data, or make the map with --keep weight")
    np.savetxt(tmp_path / "t.csv", np.eye(4), delimiter=",", header="a,b,c,d", comments="")
    assert plot("--color", "weight", "--data", "t.csv") == 2
    assert "neither m.csv nor t.csv has a column 'weight'; the columns are 'class', 'y1'" in one_line_error(capsys)


@pytest.fixture
def drawn(plot, tmp_path, monkeypatch):
    """Return a function that plots with the lines of a table as the data, and returns what is drawn."""
    drawings = []
    monkeypatch.setattr("equipoise.cli.plot.render", lambda format, drawing: drawings.append(drawing) or b"ink")

    def draw(color, *lines):
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        assert plot("--data", "t.csv", "--color", color, "--out", "m.png") == 0
        return drawings[-1]

    return draw


@pytest.mark.parametrize(
    ("color", "expected"),
    [
        ("age", [20.0, np.nan, 40.0, 50.0]),
        ("city", ["Bern", "Graz", None, "Bern"]),
        ("day", ["2020-08-18", None, "2020-08-19", "2020-08-20"]),
        ("empty", [np.nan] * 4),
    ],
)
def test_gaps_in_the_data_do_not_stop_a_plot(drawn, color, expected):
    lines = ["age,city,day,empty", "20,Bern,2020-08-18,", "NA,Graz,,", "40,,2020-08-19,", "50,Bern,2020-08-20,"]
    found = drawn(color, *lines)
    assert isinstance(found, Drawing) and found.color == color
    np.testing.assert_array_equal(
        found.columns[color], np.array(expected, dtype=float if color in ("age", "empty") else object)
    )


def test_gaps_in_the_colour_are_grey(plot, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr("equipoise.cli.pictures._as_bytes", lambda figure, format: figures.append(figure) or b"ink")
    for cells in (("20", "", "40", "50"), ("Bern", "n/a", "Graz", "Bern")):
        (tmp_path / "t.csv").write_text("\n".join(["x,z", *(f"{cell},1" for cell in cells)]) + "\n")
        assert plot("--data", "t.csv", "--color", "x", "--out", "m.png") == 0
        colors = figures[-1].axes[0].collections[0].get_facecolors()[:, :3]
        is_grey = np.abs(colors - to_rgb(LIGHT.missing)).max(axis=1) < 1e-6
        assert is_grey.sum() == 1


def test_a_colour_beyond_the_columns_of_a_page_is_found(drawn):
    found = drawn("c59", ",".join(f"c{j}" for j in range(60)), *(",".join([str(i)] * 60) for i in range(4)))
    np.testing.assert_array_equal(found.columns["c59"], range(4))

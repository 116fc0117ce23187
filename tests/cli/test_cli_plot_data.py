"""`equipoise plot` with columns that only the data of a map have."""

import numpy as np
import pytest
from support.command_line import one_line_error

from equipoise.cli import main


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

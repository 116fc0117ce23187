"""The geometry of a map on the command line."""

import pytest

import equipoise as eq
from equipoise.cli import main
from equipoise.geometry import Torus
from equipoise.views import charts


def run(*arguments):
    return main([*map(str, arguments)])


def test_geometry_of_a_map_is_read_from_a_model_or_given(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    drawn = []
    make = charts._torus
    monkeypatch.setattr(charts, "_torus", lambda Y, geometry: drawn.append(geometry) or make(Y, geometry))
    assert run("embed", "iris", "--geometry", "torus", "--n-iter", 20, "--save", "iris.eqz") == 0
    assert run("plot", "iris.eqz", "--out", "model.png") == 0
    assert run("plot", "iris.csv", "--geometry", "torus:60", "--out", "table.png") == 0
    fitted = eq.load("iris.eqz").geometry_
    assert drawn == [fitted, fitted, Torus(60.0)]
    capsys.readouterr()
    assert run("evaluate", "iris", "iris.eqz") == 0
    assert "map in a torus" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run("plot", "iris.csv", "--geometry", "torus")
    assert "a torus needs a period, as in torus:50" in capsys.readouterr().err

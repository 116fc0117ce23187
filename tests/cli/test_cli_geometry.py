"""The geometry of a map on the command line."""

import argparse

import pytest

import equipoise as eq
from equipoise.cli import main
from equipoise.cli.geometry_option import as_option, geometry
from equipoise.geometry import Directions, Flat, Hyperbolic, Sphere, Torus
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
    assert drawn == [fitted, fitted, Torus((60.0, 60.0))]
    capsys.readouterr()
    assert run("evaluate", "iris", "iris.eqz") == 0
    assert "map in a torus" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run("plot", "iris.csv", "--geometry", "torus")
    assert "a torus needs a period, as in torus:24" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sphere", "sphere"),
        ("torus", "torus"),
        ("sphere:5", Sphere(5.0)),
        ("torus:24", Torus(24.0)),
        ("torus:24,48", Torus((24.0, 48.0))),
        ("hyperbolic:32", Hyperbolic(32.0)),
        ("Torus(24)", Torus(24.0)),
        ("Directions(radius=5)", Directions(5.0)),
    ],
)
def test_geometry_is_parsed_as_a_name_with_a_size_or_as_in_python(text, expected):
    assert geometry(text) == expected
    if not isinstance(expected, str | Directions):
        assert geometry(as_option(expected)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tours:24", "unknown geometry 'tours:24'; did you mean torus?"),
        ("cube", "unknown geometry 'cube'; choose from plane, sphere, torus or hyperbolic"),
        ("torus:x", "'x' is not a number"),
        ("torus:-1", "'torus:-1' is invalid: period must be a positive number"),
        ("Cube(3)", "choose from Plane, Sphere, Directions, Torus, Hyperbolic"),
    ],
)
def test_errors_of_the_geometry_option(text, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message.replace("(", r"\(")):
        geometry(text)


def test_embed_takes_and_prints_the_geometry(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for text in ("torus:24", "Torus(24)"):
        assert run("embed", "iris", "--geometry", text, "--n-iter", 5, "--plot", "none", "--save", "m.eqz") == 0
        assert eq.load("m.eqz").geometry_ == Torus((24.0, 24.0))
        assert "geometry            torus:24; pass --geometry torus:24" in capsys.readouterr().out
    assert run("embed", "iris", "--n-iter", 5, "--plot", "none") == 0
    assert "--geometry" not in capsys.readouterr().out
    assert as_option(Flat()) is None
    with pytest.raises(SystemExit):
        run("embed", "--help")
    assert "torus:24" in capsys.readouterr().out


@pytest.mark.parametrize(("space", "message"), [("torus:6", "outside [0, 6) of a torus"), ("sphere", "equal norms")])
def test_plot_refuses_a_map_of_another_space(space, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map.csv").write_text("y1,y2\n1,2\n5,12\n3,4\n", encoding="utf-8")
    assert run("plot", "map.csv", "--geometry", space) == 2
    error = capsys.readouterr().err
    assert message in error and "row 1" in error


def test_evaluate_and_compare_take_the_geometry_of_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("embed", "iris", "--geometry", "torus:20", "--n-iter", 20, "--plot", "none", "--save", "iris.eqz") == 0
    capsys.readouterr()

    def table(*arguments):
        assert run(*arguments) == 0
        return capsys.readouterr().out.partition("\n")[2]

    torus = table("evaluate", "iris", "iris.csv", "--geometry", "torus:20")
    assert "map in a torus (period 20 × 20)" in torus
    # The model says how far it is from convergence, and a table does not.
    assert torus.partition("\nread ")[0] == table("evaluate", "iris", "iris.eqz").partition("\nread ")[0]
    assert torus != table("evaluate", "iris", "iris.csv")
    one = table("compare", "iris", "iris.csv", "--geometry", "torus:20")
    (tmp_path / "flat.csv").write_bytes((tmp_path / "iris.csv").read_bytes())
    several = table("compare", "iris", "iris.csv", "flat.csv", "--geometry", "torus:20", "plane")
    recall = [line.split() for text in (one, several) for line in text.splitlines() if line.startswith("neighbours")]
    assert recall[0][2] == recall[1][2] and "%" in recall[1][-1] + recall[1][-2]
    assert run("compare", "iris", "iris.csv", "--geometry", "torus:20", "plane") == 2
    assert "--geometry has 2 spaces for 1 map; pass one, or one per map" in capsys.readouterr().err

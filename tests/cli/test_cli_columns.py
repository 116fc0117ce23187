"""Columns on the command line: hints about them, those left out, those copied into the map; and `stability`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.command_line import embed, one_line_error, read_csv

import equipoise as eq
from equipoise.cli import main

QUICK = ("--iterations", 20)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a CSV file of 40 rows from columns, and returns its path."""

    def write_table(**columns):
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        return tmp_path / "t.csv"

    return write_table


def embedded(capsys, path, *words):
    """Return the lines that `embed` prints."""
    assert embed(path, *words, *QUICK, "--out", path.parent / "map.csv") == 0
    return capsys.readouterr().out.splitlines()


def test_hints_name_columns_that_need_attention(write, capsys):
    path = write(
        a=X[:, 0],
        b=X[:, 1],
        no=RNG.permutation(40) + 100,
        income=[f'"{i + 1},250"' for i in range(40)],
        town=["x"] * 40,
    )
    lines = embedded(capsys, path)
    assert "not embedded        'income', 'town'" in lines
    assert (
        "hint                column 'income' is not embedded, because cells such as '1,250' are text; write plain"
        " numbers, such as 1234.5"
    ) in lines
    assert (
        "hint                column 'no' numbers the rows; --id no uses it for their names instead of embedding it"
    ) in lines
    assert not any("variance" in line or "town" in line for line in lines if line.startswith("hint"))
    assert not any(line.startswith("hint") for line in embedded(capsys, path, "--columns", "a,b", "--id", "no")[3:])


def test_hint_on_a_dominant_column(write, capsys):
    year = 1900 + 3 * RNG.integers(0, 40, 40)
    path = write(a=X[:, 0], b=X[:, 1], year=year)
    variance = np.var(np.column_stack([X[:, :2], year]), axis=0)
    expected = f"column 'year' has {variance[2] / variance.sum():.1%} of the variance"
    (line,) = (line for line in embedded(capsys, path) if line.startswith("hint"))
    assert expected in line and line.endswith("--standardize gives all columns the same weight")
    for words in (("--standardize",), ("--metric", "cosine"), ("--columns", "a,b")):
        assert not any(line.startswith("hint") for line in embedded(capsys, path, *words))


@pytest.mark.parametrize("method", ["pca", "classicalmds", "isomap", "lle", "laplacianeigenmaps", "mds"])
def test_hint_on_a_dominant_column_for_methods_of_linear_algebra(write, tmp_path, capsys, method):
    """PCA has no parameter `metric`."""
    path, hint = write(a=X[:, 0], b=X[:, 1], year=1000 * X[:, 2]), "column 'year' has 100.0% of the variance"
    for words, expected in (([], True), (["--standardize"], False)):
        assert embed(path, "--method", method, *words, "--out", tmp_path / "map.csv") == 0
        assert (hint in capsys.readouterr().out) is expected


@pytest.mark.parametrize(("names", "kept"), [("b", ["b"]), ("c,a", ["c", "a"]), ("all", ["a", "b", "c"])])
def test_keep_copies_embedded_columns_into_the_map(write, tmp_path, names, kept):
    path = write(a=X[:, 0], b=X[:, 1], c=X[:, 2], kind=["x", "y"] * 20)
    model = tmp_path / "t.eq"
    assert embed(path, "--pca", 2, "--keep", names, *QUICK, "--out", tmp_path / "map.csv", "--save", model) == 0
    header, rows = read_csv(tmp_path / "map.csv")
    assert header == ["y1", "y2", *kept, "kind"]
    assert_array_equal(np.array([row[2:-1] for row in rows], float), X[:, ["abc".index(name) for name in kept]])
    assert main(["plot", str(tmp_path / "map.csv"), "--color", kept[0], "--out", str(tmp_path / "m.svg")]) == 0
    words = ["transform", str(model), str(path), "--keep", names, "--out", str(tmp_path / "new.csv")]
    assert main(words) == 0 and read_csv(tmp_path / "new.csv")[0] == header


@pytest.mark.parametrize("form", ["{:02}.08.2020", "08/{:02}/2020", "{:02}.08.20 12:30", "2020/08/{:02}"])
def test_hint_on_dates_in_another_form_and_error_for_new_rows(write, tmp_path, capsys, form):
    days = [form.format(i % 28 + 1) for i in range(40)]
    words = ("--metric", "mixed", "--method", "classicalmds", "--out", tmp_path / "map.csv")
    assert embed(write(a=X[:, 0], day=days), *words) == 0
    assert (
        f"hint                column 'day' is read as text, because cells such as {days[0]!r} are not read as dates;"
        " write dates as year-month-day, such as 2020-08-18\n"
    ) in capsys.readouterr().out
    model = tmp_path / "t.eq"
    iso = [f"2020-08-{i % 28 + 1:02}" for i in range(40)]
    assert embed(write(a=X[:, 0], day=iso), *words, "--save", model) == 0
    assert "hint  " not in capsys.readouterr().out
    path = write(a=X[:, 0], day=[iso[0], *days[1:]])
    assert main(["transform", str(model), str(path), "--out", str(tmp_path / "new.csv")]) == 2
    assert (
        f"column 'day' contains categories, such as {days[1]!r}, but contained dates when the method was fitted; write"
        " dates as year-month-day, such as 2020-08-18"
    ) in one_line_error(capsys)


def test_keep_of_unknown_columns_raises(write, capsys, tmp_path):
    assert embed(write(alpha=X[:, 0], beta=X[:, 1]), "--keep", "alpa") == 2
    assert "t.csv: no column is named 'alpa'; did you mean 'alpha'?" in one_line_error(capsys)
    np.save(tmp_path / "t.npy", X)
    assert embed(tmp_path / "t.npy", "--keep", "all") == 2
    assert "t.npy has no column names; omit --keep" in one_line_error(capsys)


def test_stability_matches_the_library(write, tmp_path, capsys):
    path = write(a=X[:, 0], b=X[:, 1], c=X[:, 2], kind=["x", "y"] * 20)
    words = ["--runs", "3", "--subsample", "0.9", "--noise", "0.1", "--k", "5", "--seed", "4", "--n-iter", "50"]
    files = ["--out", str(tmp_path / "mean.csv"), "--figure", str(tmp_path / "runs.png")]
    assert main(["stability", str(path), "--label", "kind", *words, *files]) == 0
    expected = eq.stability(eq.TSNE(n_iter=50), X, runs=3, subsample=0.9, noise=0.1, k=5, random_state=4)
    printed = " ".join(capsys.readouterr().out.split())
    assert " ".join(" ".join(str(expected).splitlines()[1:]).split()) in printed
    header, rows = read_csv(tmp_path / "mean.csv")
    assert header == ["y1", "y2", "kind", "variation", "kept"] and (tmp_path / "runs.png").stat().st_size > 1000
    assert_allclose(np.array([row[3] or "nan" for row in rows], float), expected.variation)
    assert main(["stability", str(path), "--runs", "1"]) == 2
    assert "runs=1 is not an integer from 2 to 100000" in one_line_error(capsys)

"""Tables with text, dates and gaps on the command line: --metric mixed, --missing and --exclude."""

from __future__ import annotations

from itertools import takewhile

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from pyarrow import parquet
from support.command_line import embed, one_line_error, read_csv

import equipoise as eq
from equipoise import data
from equipoise.cli import main
from equipoise.cli.page_details import page_details
from equipoise.cli.saved_model import load_model
from equipoise.views.column import read_column

N = 60
BRIEF = ("--n-iter", 20, "--perplexity", 8)


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A file with a counter, names, dates, text, numbers with commas, and gaps."""
    rng = np.random.default_rng(0)
    lines = ["order,customer,date,city,price,age,comment"]
    for i in range(N):
        city = ["Bern", "Oslo", "n/a"][i % 3]
        age = "" if i % 10 == 4 else rng.integers(20, 80)
        day = rng.integers(10, 29)
        lines.append(f'{100 + i},C{i:03d},2024-03-{day},{city},"{rng.integers(1000, 9999):,}",{age},')
    path = tmp_path_factory.mktemp("messy") / "messy.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.filterwarnings("ignore:left out of the distance")
def test_a_messy_file_goes_through_one_command(messy, tmp_path, capsys):
    out, model = tmp_path / "map.csv", tmp_path / "m.eq"
    assert embed(messy, "--metric", "mixed", *BRIEF, "--out", out, "--save", model) == 0
    text = capsys.readouterr().out
    assert "compared            2 numbers, 1 date, 1 category" in text
    assert (
        "left out            'order' (numbers the rows), 'customer' (differs in nearly every row, like a name)" in text
    )
    assert "missing             26 values (10.8%) in 24 rows and 2 columns; rows are compared" in text
    assert len(read_csv(out)[1]) == N
    again = tmp_path / "again.csv"
    assert main(["transform", str(model), str(messy), "--out", str(again)]) == 0
    assert read_csv(again) == read_csv(out)
    assert main(["evaluate", str(messy), str(model)]) == 0


def test_the_command_line_gives_the_map_of_the_library(messy, tmp_path):
    model = tmp_path / "m.eq"
    assert (
        embed(
            messy,
            "--metric",
            "mixed",
            "--exclude",
            "comment,date",
            *BRIEF,
            "--save",
            model,
            "--out",
            tmp_path / "y.csv",
        )
        == 0
    )
    X = data.read(messy, every_kind=True, exclude=["comment", "date"]).X
    with pytest.warns(UserWarning, match="left out"):
        method = eq.TSNE(metric="mixed", n_iter=20, perplexity=8, random_state=0).fit(X)
    assert_allclose(eq.load(model).embedding_, method.embedding_)


@pytest.mark.parametrize(
    ("how", "note", "rows"),
    [
        ("median", "in 6 rows and 1 column; filled in by the median", N),
        ("mean", "in 6 rows and 1 column; filled in by the mean", N),
        ("distance", "in 6 rows and 1 column; rows are compared in the columns where both have a value", N),
        ("drop", "6 rows dropped, 54 left", 54),  # gaps of columns that are left out do not count
    ],
)
def test_missing_values_of_numbers(messy, tmp_path, capsys, how, note, rows):
    out, model = tmp_path / "map.csv", tmp_path / "m.eq"
    steps = () if how == "distance" else ("--standardize",)
    assert embed(messy, "--missing", how, "--exclude", "order", *steps, *BRIEF, "--out", out, "--save", model) == 0
    text = capsys.readouterr().out
    assert note in text
    assert "left out            'customer', 'date', 'city' (not numbers), 'comment' (empty)" in text
    assert len(read_csv(out)[1]) == rows
    if how != "drop":  # the gaps of new rows are filled in by the values of the fitted rows
        few = tmp_path / "few.csv"
        few.write_text("\n".join(messy.read_text().splitlines()[:7]) + "\n")
        assert main(["transform", str(model), str(few), "--out", str(tmp_path / "new.csv")]) == 0
        method = eq.load(model)
        assert len(read_csv(tmp_path / "new.csv")[1]) == 6
        assert method.embedding_.shape == (rows, 2)


def test_text_and_gaps_are_copied_into_the_map(messy, tmp_path):
    out = tmp_path / "map.csv"
    assert embed(messy, "--metric", "mixed", "--keep", "city,age", *BRIEF, "--out", out) == 0
    header, rows = read_csv(out)
    assert {"city", "age"} <= set(header)
    assert {row[header.index("city")] for row in rows} == {"Bern", "Oslo", ""}


@pytest.mark.filterwarnings("ignore:left out of the distance")
def test_kept_dates_are_written_as_in_the_file(messy, tmp_path):
    lines = messy.read_text().splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[2], "")
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines) + "\n")
    days = [line.split(",")[2] for line in lines[1:]]
    for suffix in ("csv", "tsv", "parquet"):
        out = tmp_path / f"map.{suffix}"
        assert embed(table, "--metric", "mixed", "--keep", "all", *BRIEF, "--out", out) == 0
        kept = data.read(out, columns=["y1"]).extra
        assert kept["date"].tolist() == days
        assert kept["price"].dtype == float
    shown = read_column(kept["date"], N, "date")
    assert "" in shown.names  # fewer than 20 days are classes
    listed = page_details(data.read(table, every_kind=True)).columns
    assert listed["date"].tolist() == days


POSTCODES = ("8001", "01010", "50667", "")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """A file of numbers and postcodes, some of which start with a zero and some of which are missing."""
    rng = np.random.default_rng(0)
    lines = [f"{x:.3f},{y:.3f},{POSTCODES[i % 4]}" for i, (x, y) in enumerate(rng.normal(size=(N, 2)))]
    path = tmp_path_factory.mktemp("addresses") / "addresses.csv"
    path.write_text("\n".join(["a,b,postcode", *lines]) + "\n")
    return path


def test_postcodes_are_categories_and_copied_as_written(addresses, tmp_path, capsys):
    out, again = tmp_path / "map.csv", tmp_path / "again.csv"
    assert embed(addresses, "--metric", "mixed", "--keep", "postcode", *BRIEF, "--out", out) == 0
    text = capsys.readouterr().out
    assert "compared            2 numbers, 1 category\nnumbers             '" in text
    assert "category            'postcode'\n" in text
    header, rows = read_csv(out)
    codes = [row[header.index("postcode")] for row in rows]
    assert codes == [POSTCODES[i % 4] for i in range(N)]
    assert data.read(out, columns=["y1", "y2"]).extra["postcode"].tolist() == codes
    assert embed(addresses, "--exclude", "postcode", *BRIEF, "--out", again) == 0  # another metric
    header, rows = read_csv(again)
    assert [row[header.index("postcode")] for row in rows] == codes


def test_metrics_of_numbers_read_postcodes_as_numbers(addresses, tmp_path):
    model, full = tmp_path / "m.eq", tmp_path / "full.csv"
    assert embed(addresses, "--missing", "median", *BRIEF, "--out", tmp_path / "map.csv", "--save", model) == 0
    assert load_model(model).preparation.fill.tolist()[2] == 8001
    full.write_text("\n".join(line for line in addresses.read_text().splitlines() if not line.endswith(",")))
    assert data.read(full).X[:3, 2].tolist() == [8001, 1010, 50667]


@pytest.mark.filterwarnings("ignore:left out of the distance")
@pytest.mark.parametrize(
    ("verb", "expected"),
    [("sweep", "perplexity 8"), ("stability", "2 runs with different seeds and 80% of the points")],
)
def test_other_verbs_compare_text_too(messy, capsys, verb, expected):
    values = ("--perplexity", 5, 8) if verb == "sweep" else ("--perplexity", 8, "--runs", 2, "--subsample", 0.8)
    words = [verb, messy, "--metric", "mixed", "--n-iter", 20, *values]
    assert main([*map(str, words)]) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ("--missing", "mean", "--standardize"),
        ("--missing", "drop"),
        ("--columns", "order,age", "--missing", "distance"),
    ],
    ids=lambda options: " ".join(options),
)
def test_sweep_and_stability_print_what_was_read_as_embed_does(messy, tmp_path, capsys, options):
    assert embed(messy, *options, *BRIEF, "--out", tmp_path / "map.csv") == 0
    expected = list(takewhile(lambda line: not line.startswith("iteration"), capsys.readouterr().out.splitlines()))
    for verb in (("sweep", "--perplexity", "5", "8"), ("stability", "--runs", "2")):
        assert main([verb[0], str(messy), *options, *map(str, BRIEF), *verb[1:]]) == 0
        printed = list(takewhile(lambda line: not line.startswith("TSNE("), capsys.readouterr().out.splitlines()))
        assert printed == expected and len(printed) > 1


def test_parquet_files_keep_their_text(tmp_path):
    table = pa.table({"x": [1.0, None, 3.0], "c": ["a", "b", None], "skip": [1, 2, 3], "name": ["p", "q", "r"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    read = data.read(tmp_path / "t.parquet", every_kind=True, exclude=["skip"], id="name")
    assert read.X.to_pydict() == {"x": [1.0, None, 3.0], "c": ["a", "b", None]}
    assert list(read.ids) == ["p", "q", "r"] and list(read.extra) == ["skip"]


def test_files_of_numbers_are_read_as_usual(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(4))
    assert isinstance(data.read(tmp_path / "x.npy", every_kind=True).X, np.ndarray)


def test_files_of_numbers_with_gaps_are_transposed(tmp_path):
    (tmp_path / "x.csv").write_text("gene,c1,c2\na,1,2\nb,,4\n")
    read = data.read(tmp_path / "x.csv", id="gene", every_kind=True, transpose=True)
    assert_allclose(read.X, [[1, np.nan], [2, 4]])
    assert read.columns == ("a", "b") and list(read.ids) == ["c1", "c2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--metric", "mixed", "--standardize"),
            "--metric mixed compares columns in units of their ranges; omit --stand",
        ),
        (("--missing", "distance", "--pca", 2), "--missing distance compares the columns as they are; omit --pca"),
        (("--missing", "distance", "--metric", "cosine"), "--missing distance needs the metric euclidean"),
        (("--missing", "median", "--columns", "city,age"), "column 'city' of messy contains categories, not numbers"),
        (("--metric", "mixed", "--normalize-total"), "in units of their ranges; omit --normalize-total"),
        (("--metric", "mixed", "--transpose"), "messy.csv: transpose needs a table of numbers; omit transpose, or"),
        (("--exclude", "citty"), "no column is named 'citty'; did you mean 'city'"),
        (("--missing", "zero"), "invalid choice: 'zero'"),
    ],
)
def test_errors_name_the_option(messy, capsys, options, message):
    try:
        assert embed(messy, *options, *BRIEF, "--out", messy.with_suffix(".out.csv")) == 2
    except SystemExit as exit:
        assert exit.code == 2
    assert message in one_line_error(capsys)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "--metric=mixed",
            "pca has no parameter metric; it needs numbers without gaps: use --exclude and --missing, or",
        ),
        ("--missing=distance", "--missing distance needs a method with the parameter --metric; use --missing mean,"),
    ],
)
def test_errors_of_pca_name_a_method_with_a_metric(messy, capsys, option, message):
    try:
        assert embed(messy, "--method", "pca", option, "--out", messy.with_suffix(".out.csv")) == 2
    except SystemExit as exit:
        assert exit.code == 2
    error = one_line_error(capsys)
    assert message in error and "or --method classicalmds" in error
    assert embed(messy, "--method", "classicalmds", option, "--out", messy.with_suffix(".out.csv")) == 0


@pytest.mark.parametrize("how", ["median", "drop"])
def test_a_column_that_dominates_is_named_in_tables_with_gaps(tmp_path, capsys, how):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{1000 * c:.0f}" for a, b, c in rng.normal(size=(40, 3))]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["a,b,postcode", ",1.0,5", *rows]) + "\n")
    assert embed(table, "--missing", how, *BRIEF, "--out", tmp_path / "map.csv") == 0
    assert "column 'postcode' has 100.0% of the variance" in capsys.readouterr().out

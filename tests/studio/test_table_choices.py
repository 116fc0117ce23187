"""Choices about a file: what its first rows suggest, and that the library and the command line read the same table."""

import json

import numpy as np
import pytest

from equipoise import data
from equipoise.cli import main
from equipoise.studio import Recipe, Run, TableChoices
from equipoise.studio.data_sources import DataSources
from equipoise.studio.limits import Limits
from equipoise.studio.page.link import View, from_query, to_query
from equipoise.studio.page.table_form import TableForm, read_answer
from equipoise.studio.preview import ROW_NAMES, end_of_last_row, preview
from equipoise.studio.session.python_source import python_source
from equipoise.views.column import MAX_CLASSES

GIVEN = {"label": None, "id": None, "exclude": [], "metric": "euclidean", "missing": "error", "standardize": False}


@pytest.fixture
def table(tmp_path):
    """Return a file with classes, row names, categories, a constant, numbers with gaps, and numbers."""
    rng = np.random.default_rng(0)
    lines = ["sample,species,island,mass,bill,length,one"]
    for i in range(60):
        gap = i in (7, 30)
        mass = "" if gap else f"{rng.normal(4000, 300):.0f}"
        species, island = ("Adelie", "Gentoo")[i % 2], ("Dream", "Biscoe", "Torgersen")[i % 3]
        lines.append(f"s{i:02d},{species},{island},{mass},{rng.normal(40, 3):.1f},{rng.normal():.3f},1")
    path = tmp_path / "penguins.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_suggested_choices_follow_from_the_first_rows(table, tmp_path):
    found = preview(table, "penguins.csv")
    kinds = {column.name: (column.kind, column.gaps) for column in found.columns}
    assert kinds["mass"] == ("numbers", 2) and kinds["island"] == ("categories", 0) and found.rows == 60
    assert found.choices == TableChoices("species", "sample", ("one",), every_kind=True)
    assert found.metric == "mixed" and found.is_whole
    rows = np.random.default_rng(0).normal(size=(50, 2)) * [1, 1000]
    np.savetxt(tmp_path / "plain.csv", rows, delimiter=",", header="a,b", comments="")
    found = preview(tmp_path / "plain.csv", "plain.csv")
    assert found.choices == TableChoices(standardize=True) and found.metric == "euclidean"
    assert found.reason == "“b” has 100% of the variance"


def test_large_files_are_judged_by_their_first_rows(tmp_path):
    lines = "\n".join(f'{i * 0.37:.6f},{i * 0.11:.6f},"two\nlines"' for i in range(60_000))
    (tmp_path / "long.csv").write_text(f"a,b,c\n{lines}\n")
    found = preview(tmp_path / "long.csv", "long.csv")
    assert not found.is_whole and 1000 < found.rows < 60_000
    wide = ",".join(f"g{j}" for j in range(500)) + ",cell\n" + "\n".join("1," * 500 + "x" for _ in range(3))
    (tmp_path / "wide.csv").write_text(wide)
    found = preview(tmp_path / "wide.csv", "wide.csv")
    assert len(found.columns) == 201 and found.unlisted == 300


class CountedBytes(bytes):
    """Bytes that count how many of them have been searched."""

    searched = 0

    def count(self, what, begin=0, end=None):
        self.searched += (len(self) if end is None else end) - begin
        return super().count(what, begin, len(self) if end is None else end)

    def rfind(self, what, begin=0, end=None):
        end = len(self) if end is None else end
        found = super().rfind(what, begin, end)
        self.searched += end - max(found, begin)
        return found


@pytest.mark.parametrize(
    ("content", "end"),
    [
        (b"", 0),
        (b"a,b", 0),
        (b"a,b\n1,2\n3", 8),
        (b'a,b\n1,"x\ny"\n3', 12),
        (b'a,b\n1,"x\ny\n3', 4),
        (b'a,b\n1,"say ""hi\n"" twice\n', 4),
        (b'"a\nb', 0),
        (b'a,b\n"' + b"1,2\n" * 50_000, 4),
        (b'"' + b"1,2\n" * 50_000, 0),
        (b'"\n"' * 50_000, 0),
    ],
)
def test_last_row_ends_outside_quotes_and_is_found_in_linear_work(content, end):
    counted = CountedBytes(content)
    assert end_of_last_row(counted) == end
    assert counted.searched <= 3 * len(content)  # quotes counted, then quotes and line breaks searched once


def test_quote_that_is_never_closed_in_a_large_file_is_named(tmp_path):
    (tmp_path / "open.csv").write_text('"a,b\n' + "1,2\n" * 400_000)
    with pytest.raises(
        ValueError, match=r"^open\.csv: the first row is longer than 1 MB, or a quote in it is not closed"
    ):
        preview(tmp_path / "open.csv", "open.csv")
    (tmp_path / "later.csv").write_text("a,b\n" + "1,2\n" * 50 + '3,"4\n' + "1,2\n" * 400_000)
    assert preview(tmp_path / "later.csv", "later.csv").rows == 50


def test_identifiers_dates_and_quantities_are_no_classes(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(300).astype("timedelta64[D]")
    rows = "\n".join(f"cell {i},{day},{i % 7},{i * 0.1}" for i, day in enumerate(days))
    (tmp_path / "t.csv").write_text(f"who,day,group,size\n{rows}\n")
    choices = preview(tmp_path / "t.csv", "t.csv").choices
    assert (choices.label, choices.id) == ("group", "who")
    with pytest.raises(ValueError, match="column 'size' has 300 different values; choose a column with at most 200"):
        TableChoices(label="size").read(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("choices", "metric", "options"),
    [
        (TableChoices("species", "sample", ("one",), every_kind=True), "mixed", ["--metric", "mixed"]),
        (
            TableChoices("species", "sample", ("island", "one"), missing="distance"), "nan_euclidean",
            ["--missing", "distance"],
        ),
        (
            TableChoices("species", "sample", ("island", "one"), missing="drop"), "cosine",
            ["--missing", "drop", "--metric", "cosine"],
        ),
        (
            TableChoices("species", "sample", ("island", "one"), missing="median", standardize=True), "euclidean",
            ["--missing", "median", "--standardize"],
        ),
        (TableChoices("species", "sample", ("mass", "one"), standardize=True), "euclidean", ["--standardize"]),
    ],
)  # fmt: skip
def test_choices_give_the_bytes_of_the_command_line_and_of_the_copied_code(
    table, tmp_path, monkeypatch, choices, metric, options
):
    monkeypatch.chdir(tmp_path)
    sources = DataSources(tmp_path, Limits())
    run = Run(sources.load("file:penguins.csv", choices).X, Recipe("umap", seed=1, metric=metric), n_jobs=1)
    run.step(200)
    method = ["--method", "umap", "--n-iter", "200", "--seed", "1", "--label", "species", "--id", "sample"]
    excluded = ["--exclude", ",".join(choices.exclude)]
    assert main(["embed", "penguins.csv", *method, *excluded, *options, "--out", "map.npy"]) == 0
    assert np.load("map.npy").tobytes() == run.frame.Y.tobytes()
    exec(python_source(run, sources.code("file:penguins.csv", choices), 200), namespace := {})
    assert namespace["Y"].tobytes() == run.frame.Y.tobytes()
    view = View("file:penguins.csv", choices=choices)
    assert from_query(to_query(view)) == view


def test_gaps_and_unknown_columns_are_named_with_a_remedy(table, tmp_path):
    sources = DataSources(tmp_path / "uploads", Limits())
    (tmp_path / "uploads").mkdir()
    name = sources.store("C:\\data\\penguins.csv", table.read_bytes())
    assert sources.names([name])["Files"] == [(name, "penguins.csv")]
    assert sources.load(name, TableChoices("species", "sample", ("island",), missing="mean")).name == "penguins"
    with pytest.raises(
        ValueError, match=r"column .island. of penguins contains categories, not numbers; leave it out, or"
    ):
        sources.load(name, TableChoices("species", "sample", missing="mean"))
    with pytest.raises(ValueError, match=r"^penguins\.csv, line 9, column 'mass': missing value"):
        sources.load(name, TableChoices("species", "sample"))
    with pytest.raises(ValueError, match=r"penguins\.csv: no column is named 'specie'; did you mean 'species'"):
        sources.load(name, TableChoices("specie"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"metric": "mixed", "missing": "mean"}, (TableChoices(every_kind=True), "mixed_mean")),
        ({"metric": "mixed", "missing": "distance"}, (TableChoices(every_kind=True), "mixed")),
        ({"missing": "distance"}, (TableChoices(missing="distance"), "nan_euclidean")),
        ({"label": "a", "exclude": ["b"]}, (TableChoices("a", exclude=("b",)), "euclidean")),
    ],
)
def test_answers_of_the_form_become_choices_and_a_metric(change, expected):
    assert read_answer("file:t.csv", GIVEN | change) == ("file:t.csv", *expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "cosine", "missing": "distance"}, "the metric cosine needs a value in every cell; choose the Eucl"),
        ({"metric": "secret"}, "unknown metric 'secret'"),
        ({"missing": "guess"}, "missing must be one of 'error', 'distance'"),
        ({"label": 3}, "label must be the name of a column or None, got 3"),
        ({"exclude": [3]}, "exclude must be a tuple of names of columns"),
        ({"standardize": "yes"}, "standardize must be True or False, got 'yes'"),
        ({"metric": "mixed", "standardize": True}, "only tables of numbers without gaps are standardised"),
        ({"more": 1}, "the choices about the table are not valid; open the form again"),
    ],
)
def test_invalid_answers_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        read_answer("file:t.csv", GIVEN | change)
    with pytest.raises(ValueError):
        from_query("data=file:t.csv&table.exclude=" + json.dumps({"a": 1}))


def test_mean_of_categories_is_a_metric():
    with pytest.raises(ValueError, match="missing='mean' is for tables of numbers; use metric=\"mixed_mean\""):
        TableChoices(every_kind=True, missing="mean")


def test_unnamed_first_column_names_the_rows(tmp_path):
    rows = "\n".join(f"r{i},{i % 3},{i * i % 7}" for i in range(30))
    (tmp_path / "t.csv").write_text(f",a,b\n{rows}\n")
    found = preview(tmp_path / "t.csv", "t.csv")
    assert found.unlisted == 0 and [column.name for column in found.columns] == ["column 1", "a", "b"]
    assert found.choices.id == "column 1" and found.choices.read(tmp_path / "t.csv").ids[2] == "r2"


def test_arrays_have_no_names_to_choose(tmp_path):
    np.save(tmp_path / "x.npy", data.load("iris").X)
    found = preview(tmp_path / "x.npy", "x.npy")
    assert (found.columns, found.unlisted, found.rows) == ((), 4, 150)


def test_row_numbers_name_rows_and_constants_do_not(tmp_path):
    rows = "\n".join(f"{i},same name,{i * i % 7}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"step,name,size\n{rows}\n")
    found = preview(tmp_path / "t.csv", "t.csv")
    assert {column.name: column.useless for column in found.columns} == {
        "step": "numbers the rows", "name": "constant", "size": "",
    }  # fmt: skip
    assert (found.choices.id, found.choices.exclude) == ("step", ("name",))


def test_form_gets_the_largest_number_of_classes_and_the_kind_of_row_names(tmp_path):
    pytest.importorskip("bokeh")
    (tmp_path / "t.csv").write_text(",a\n" + "".join(f"r{i},{i * 0.5}\n" for i in range(30)))
    form, found = TableForm(), preview(tmp_path / "t.csv", "t.csv")
    form.show("file:t.csv", "t.csv", found)
    state = json.loads(form.state.tags[0])
    assert state["max_classes"] == MAX_CLASSES and state["row_names"] == ROW_NAMES == found.columns[0].kind

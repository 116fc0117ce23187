"""Hostile names and values stay text in pages, reports, CSV and SVG, whatever field they are in."""

import csv
import io
import xml.etree.ElementTree as ElementTree
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from support.browser import next_frames, watched
from support.hostile import FORMULA_STARTS, HOSTILE

import equipoise as eq
from equipoise import data
from equipoise.cli.pictures import Drawing, render
from equipoise.data import Dataset
from equipoise.data.formulas import mark_formula, unmark_formula
from equipoise.data.write import WRITERS
from equipoise.evaluate.figures.report_figure import comparison_figure

N = 12
Y = np.random.default_rng(0).normal(size=(N, 2))
pytestmark = pytest.mark.filterwarnings("ignore:Glyph")  # matplotlib's font does not have all of these characters
texts = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


class Elements(HTMLParser):
    """The elements of a page and their attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, tuple(name for name, _ in attributes)))


def page_with(field, text):
    """Return a page with a text in one of its fields."""
    other = np.array(["a", "b"] * (N // 2), dtype=object)
    fields = {"title": "title", "column": "group", "class": "a", "cell": "x", "name": "one"}
    fields[field] = text
    values = other.copy()
    values[values == "a"] = fields["class"]
    cells = np.array([fields["cell"], *(f"id {i}" for i in range(1, N))], dtype=object)
    table = {fields["column"]: values, "id": cells, "number": np.arange(N) % 2}
    if field == "name":
        return eq.page(Y, np.arange(N) % 2, names=[text, "two"], title=fields["title"])
    return eq.page(Y, fields["column"], table=table, title=fields["title"])


@cache
def elements_with_plain_text(field):
    return Elements(page_with(field, "plain").html).found


@texts
@pytest.mark.parametrize("field", ["title", "column", "class", "cell", "name"])
def test_page_has_the_same_elements_whatever_the_text(field, text):
    pytest.importorskip("bokeh")
    assert Elements(page_with(field, text).html).found == elements_with_plain_text(field)


@texts
def test_report_has_the_same_elements_whatever_the_text(text, hostile_report):
    assert Elements(hostile_report(text)).found == Elements(hostile_report("plain")).found


@pytest.fixture(scope="module")
def hostile_report():
    pytest.importorskip("bokeh")
    X = np.random.default_rng(0).normal(size=(40, 4))

    @cache  # the plain report is compared with all others
    def html(text):
        labels = np.array([text, "other"], dtype=object)[np.arange(40) % 2]
        return str(eq.evaluate(X, X[:, :2], labels, k=5).to_html())

    return html


@texts
@pytest.mark.parametrize("field", ["title", "class", "column"])
def test_svg_is_well_formed_and_has_no_scripts(field, text):
    classes = np.array([text if field == "class" else "a", "b"], dtype=object)[np.arange(N) % 2]
    column = text if field == "column" else "group"
    values = np.linspace(0, 1, N) if field == "column" else classes
    svg = render("svg", Drawing(Y, {column: values}, column, text if field == "title" else "title"))
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
    assert "script" not in tags and "foreignObject" not in tags and "a" not in tags
    assert not any(name.startswith("on") for e in ElementTree.fromstring(svg).iter() for name in e.attrib)


@cache
def plain_report():
    X = np.random.default_rng(0).normal(size=(40, 4))
    return eq.evaluate(X, X[:, :2], k=5)


@texts
def test_comparison_figure_shows_hostile_names(text):
    figure = comparison_figure(dict.fromkeys((text, "other"), plain_report()))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    ElementTree.fromstring(buffer.getvalue())


@texts
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("field", ["class", "id", "column", "extra"])
def test_csv_has_no_formulas_and_is_read_back_unchanged(tmp_path, suffix, field, text):
    names = np.array([text, "plain"], dtype=object)[np.arange(N) % 2]
    ids = np.array([text if field == "id" and i == 3 else f"row {i}" for i in range(N)], dtype=object)
    extra = {text if field == "column" else "note": names if field == "extra" else np.full(N, "x", dtype=object)}
    classes = (text, "plain") if field == "class" else ("a", "b")
    dataset = Dataset("d", np.zeros((N, 3)), np.arange(N) % 2, classes, ids=ids, extra=extra)
    buffer = io.BytesIO()
    WRITERS[suffix](buffer, Y, dataset)
    cells = csv.reader(io.StringIO(buffer.getvalue().decode(), newline=""), delimiter="," if suffix == ".csv" else "\t")
    for cell in (cell for row in cells for cell in row):
        assert not cell.startswith(FORMULA_STARTS) or float(cell) is not None
    (tmp_path / f"map{suffix}").write_bytes(buffer.getvalue())
    found = data.read(tmp_path / f"map{suffix}", columns=["y1", "y2"], label="class", id="id")
    assert np.array_equal(found.X, Y) and found.ids.tolist() == ids.tolist()
    assert [found.classes[label] for label in found.labels] == [classes[i % 2] for i in range(N)]
    assert {name: values.tolist() for name, values in found.extra.items()} == {
        name: values.tolist() for name, values in extra.items()
    }


@texts
def test_marked_texts_are_unmarked(text):
    for given in (text, f"'{text}", f"''{text}"):
        assert unmark_formula(mark_formula(given)) == given
        assert not mark_formula(given).startswith(FORMULA_STARTS)


@pytest.mark.parametrize("number", ["-1", "+2.5", "-1e-300", "-.5", "3", "-7."])
def test_numbers_stay_numbers(number):
    assert mark_formula(number) == unmark_formula(number) == number


def test_hostile_page_runs_no_script_and_its_selection_has_no_formulas(browser, tmp_path):
    """In a real browser: hover, search, legend and export, with every text in every field at once."""
    pytest.importorskip("bokeh")
    every = list(HOSTILE.values())
    Z = np.random.default_rng(1).normal(size=(len(every), 2))
    table = {text: np.roll(np.array(every, dtype=object), i) for i, text in enumerate(every)}
    with watched(browser) as tab:
        eq.page(Z, every[0], table=table, title=every[1]).save(tmp_path / "page.html")
        tab.goto((tmp_path / "page.html").as_uri())
        tab.wait_for_selector("body[data-ready=yes]")
        tab.locator("#legend button").first.click()
        tab.select_option("#color", "2")
        tab.evaluate("[...document.querySelectorAll('#legend button')].at(-1).click()")
        next_frames(tab)
        assert tab.title() != "run" and not tab.locator("#legend svg, #legend script, #legend img").count()
        with tab.expect_download() as download:
            tab.click("#export")
        with open(download.value.path(), newline="", encoding="utf-8") as file:
            header, row = csv.reader(file)
        assert len(header) == len(row) == 3 + len(every)
        assert not any(cell.startswith(FORMULA_STARTS) for cell in (*header, *row[3:]))
        assert {unmark_formula(name) for name in header[3:]} == set(every)
        tab.mouse.move(400, 400)
        assert tab.title() != "run"

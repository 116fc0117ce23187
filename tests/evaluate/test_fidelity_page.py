"""The fidelity page in a real browser without a network: text, legends, and the neighbours of a clicked point."""

import importlib
import re

import numpy as np
import pytest
from support.browser import watched

import equipoise as eq
from equipoise.evaluate import sample as sampling
from equipoise.geometry import Hyperbolic, Sphere, Torus

MODEL = "Bokeh.documents.map((doc) => doc.get_model_by_name('{name}')).find((model) => model != null)"
NAMES = np.array(["cat", "dog", "</script><b>& bird"])


@pytest.fixture(scope="module")
def report():
    pytest.importorskip("bokeh")
    rng = np.random.default_rng(0)
    number = np.arange(240) % 3
    X = rng.normal(size=(240, 6)) + 4 * np.eye(6)[number]
    return eq.evaluate(X, eq.PCA(n_components=2).fit_transform(X), NAMES[number], k=8)


@pytest.fixture
def visit(browser, tmp_path):
    """Return a function that opens the page of a report."""
    with watched(browser) as tab:

        def visit(report):
            report.to_html(tmp_path / "page.html")
            tab.goto((tmp_path / "page.html").as_uri())
            tab.wait_for_selector("body[data-ready=yes]")
            return tab

        yield visit


def click(tab, row):
    """Click on the point of a row in the map."""
    x, y = tab.evaluate(
        """(row) => {
            const view = [...Bokeh.index.roots].find((view) => view.model.name === "plot")
            const {row: rows, x, y} = view.model.document.get_model_by_name("points").data
            const i = rows.indexOf(row), {left, top} = view.el.getBoundingClientRect()
            return [left + view.frame.x_scale.compute(x[i]), top + view.frame.y_scale.compute(y[i])]
        }""",
        int(row),
    )
    tab.mouse.click(x, y)


def most_isolated_row(report):
    """Return the measured row farthest from its nearest neighbour, so that a click on it is unambiguous."""
    Y = report.Y[report.points]
    d2 = ((Y[:, None] - Y[None]) ** 2).sum(axis=2) + np.diag(np.full(len(Y), np.inf))
    return int(report.points[d2.min(axis=1).argmax()])


def listed_rows(tab, kind):
    return [int(text) for text in tab.locator(f"#chosen table.{kind} tbody th").all_inner_texts()]


def neighbors(report, row):
    """Return the false, missing and preserved neighbours in the order of the page."""
    hoods, k = report.neighborhoods, report.k
    (i,) = np.flatnonzero(report.points == row)
    in_map, in_data = hoods.near_y[i, :k], hoods.near_x[i, :k]
    data_rank, map_rank = hoods.rank_x[i, :k], hoods.rank_y[i, :k]
    worst, lost = np.argsort(-data_rank, kind="stable"), np.argsort(-map_rank, kind="stable")
    return {
        "false": in_map[worst][data_rank[worst] > k].tolist(),
        "missing": in_data[lost][map_rank[lost] > k].tolist(),
        "kept": in_map[data_rank <= k].tolist(),
    }


def test_page_shows_sentences_and_numbers_of_the_report(report, visit):
    tab = visit(report)
    assert tab.title() == "Fidelity of a map of 240 points"
    words = tab.inner_text("main")
    assert all(sentence in words for sentence in report.sentences)
    assert f"{float(report.trustworthiness):.3f}" in tab.inner_text("#numbers")
    for plot in ("map", "shepard", "recall"):
        assert tab.locator(f"#{plot}").bounding_box()["height"] > 250


def test_click_on_a_point_lists_its_neighbours(report, visit):
    tab = visit(report)
    row = most_isolated_row(report)
    expected = neighbors(report, row)
    assert expected["false"] and expected["missing"]  # the map drops four dimensions
    click(tab, row)
    head = tab.inner_text("#head")
    i = int(np.flatnonzero(report.points == row)[0])
    assert head.startswith(f"Row {row}, class {report.labels[row]}: trust {report.trust[i]:.3f}")
    assert f"{len(expected['kept'])} of 8 neighbours preserved" in head
    assert {kind: listed_rows(tab, kind) for kind in expected} == expected
    first = tab.locator("#chosen table.false tbody tr").first.inner_text().split()
    hoods = report.neighborhoods
    place = hoods.near_y[i].tolist().index(expected["false"][0])
    assert [int(word) for word in first[-2:]] == [place + 1, hoods.rank_x[i, place]]
    drawn = {kind: tab.evaluate(MODEL.format(name=kind) + ".data.x.length") for kind in expected}
    assert drawn == {kind: len(rows) for kind, rows in expected.items()}
    assert tab.is_hidden("#reading")
    span = f"() => {{ const {{start, end}} = {MODEL.format(name='plot')}.x_range; return end - start }}"
    before = tab.evaluate(span)
    tab.click("#zoom")
    assert tab.evaluate(span) < before
    tab.click("#back")
    assert tab.is_visible("#reading") and tab.is_hidden("#chosen")
    assert tab.evaluate(MODEL.format(name="false") + ".data.x.length") == 0


def test_listed_row_links_to_its_own_neighbours(report, visit):
    tab = visit(report)
    tab.fill("#row", "17")
    tab.press("#row", "Enter")
    assert tab.inner_text("#head").startswith("Row 17,")
    other = listed_rows(tab, "missing")[0]
    tab.locator("#chosen table.missing tbody a").first.click()
    assert tab.inner_text("#head").startswith(f"Row {other},") and tab.input_value("#row") == str(other)
    tab.fill("#row", "240")
    tab.press("#row", "Enter")
    assert "Rows go from 0 to 239" in tab.inner_text("#one")


def test_colouring_by_other_measures_changes_the_legend(report, visit):
    tab = visit(report)
    assert "0.99 or more" in tab.inner_text("#legend")
    for key, word in (("continuity", "0.95 to 0.99"), ("kept", "75% or more"), ("class", str(NAMES[2]))):
        tab.check(f"input[value={key}]")
        assert word in tab.inner_text("#legend")
    assert set(tab.evaluate(f"Array.from({MODEL.format(name='points')}.data.code)")) == {0, 1, 2}
    assert not tab.locator("#legend b").count()  # names are escaped


def test_unmeasured_points_of_a_sample_are_marked(visit, monkeypatch):
    pytest.importorskip("bokeh")
    monkeypatch.setattr(sampling, "ALL", 200)
    monkeypatch.setattr(sampling, "MIN_SAMPLE", 100)
    monkeypatch.setattr(
        importlib.import_module("equipoise.evaluate.figures.fidelity"), "MAX_ON_CANVAS", 200
    )  # drawn by WebGL
    X = np.random.default_rng(0).normal(size=(400, 4))
    report = eq.evaluate(X, X[:, :2])
    tab = visit(report)
    assert "not measured" in tab.inner_text("#legend")
    click(tab, most_isolated_row(report))
    assert re.match(rf"Row {most_isolated_row(report)}: trust", tab.inner_text("#head"))  # without classes
    out = int(np.setdiff1d(np.arange(400), report.points)[0])
    tab.fill("#row", str(out))
    tab.press("#row", "Enter")
    assert f"Row {out} is not among the 100 measured rows" in tab.inner_text("#one")


@pytest.mark.parametrize("d", [1, 3])
def test_page_states_how_other_dimensions_are_projected(d, visit):
    pytest.importorskip("bokeh")
    X = np.random.default_rng(0).normal(size=(60, 4))
    tab = visit(eq.evaluate(X, X[:, :d], k=5))
    assert "This plot shows" in tab.inner_text("main")


def test_large_maps_use_webgl_and_few_bytes_per_point(monkeypatch):
    pytest.importorskip("bokeh")
    from equipoise.evaluate.figures import fidelity

    monkeypatch.setattr(fidelity, "MAX_ON_CANVAS", 500)
    X = np.random.default_rng(0).normal(size=(1000, 3))
    large, small = (eq.evaluate(X[:n], X[:n, :2], k=10).to_html() for n in (1000, 400))
    assert '"output_backend": "webgl"' in large and '"output_backend": "webgl"' not in small
    # x, y, row, class, three measures, four codes, and 4 × 10 two-byte numbers, times 4/3 for base64
    assert len(large) - len(small) < 1.1 * 600 * 4 / 3 * (2 * 4 + 2 + 4 + 3 * 4 + 4 + 4 * 10 * 2)


class Fitted:
    """A fitted method, as far as measures need it."""

    def __init__(self, Y, geometry):
        self.embedding_, self.geometry_ = Y, geometry


def source_data(tab, name, column):
    """Return a column of a named glyph of the map."""
    return tab.evaluate(f"Array.from({MODEL.format(name=name)}.data_source.data.{column}, (part) => Array.from(part))")


def test_map_on_a_torus_has_a_square_copies_and_lines_across_its_edges(visit):
    pytest.importorskip("bokeh")
    rng = np.random.default_rng(0)
    Y = rng.uniform(0, 10, (150, 2))
    report = eq.evaluate(rng.permutation(Y), Fitted(Y, Torus((10.0, 10.0))), k=6)
    tab = visit(report)
    (xs,), (ys,) = (source_data(tab, "outline", column) for column in ("xs", "ys"))
    assert (min(xs), max(xs), min(ys), max(ys)) == (0, 10, 0, 10)
    assert len(source_data(tab, "arrowheads", "xs")) == 6
    copies = f"{MODEL.format(name='copies')}.data"
    assert tab.evaluate(f"{copies}.row.length") > 20
    assert tab.evaluate(f"Math.min(...{copies}.code)") >= 0  # coloured like their points
    tab.fill("#row", "0")
    tab.press("#row", "Enter")
    lines = f"{MODEL.format(name='lines')}.data"
    dx, dy = (np.array(tab.evaluate(f"{lines}.{a}0.map((x, i) => {lines}.{a}1[i] - x)")) for a in "xy")
    assert len(dx) > sum(len(listed_rows(tab, kind)) for kind in ("false", "missing"))  # some in two parts
    assert np.abs(dx).max() <= 5 and np.abs(dy).max() <= 5  # the shortest way


@pytest.mark.parametrize(("geometry", "lines"), [(Sphere(3.0), 16), (Hyperbolic(2.0), 0)])
def test_map_in_a_curved_space_has_its_outline(geometry, lines, visit):
    pytest.importorskip("bokeh")
    Y = np.random.default_rng(0).normal(size=(60, geometry.columns(2)))
    Y *= (3 if lines else 0.9) / np.linalg.norm(Y, axis=1, keepdims=True)
    tab = visit(eq.evaluate(Y, Fitted(Y, geometry)))
    (xs,) = source_data(tab, "outline", "xs")
    assert max(xs) == pytest.approx(2 * np.sqrt(2) if lines else 1)
    assert len(source_data(tab, "graticule", "xs")) == lines

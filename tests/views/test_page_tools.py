"""The tools of a page in a real browser: summary of a selection, marks, the class filter, the picture and keys."""

import io

import numpy as np
import pytest
from matplotlib.image import imread
from support.browser import VIEW, map_pages, next_frames, until

import equipoise as eq
from equipoise.views.coloring import MARKS, assign_colors, assign_marks
from equipoise.views.column import Classes

N = 260
CLASSES = 26


@pytest.fixture(scope="module")
def crowd():
    """26 classes of ten points on a 6 × 5 lattice, with a number that equals the class and one that does not."""
    rng = np.random.default_rng(1)
    kind = np.arange(N) % CLASSES
    Y = 10.0 * np.column_stack([kind % 6, kind // 6]) + rng.normal(size=(N, 2))
    table = {"level": kind + 0.5, "noise": rng.normal(size=N), "gap": np.where(kind < 20, np.nan, 1.5 * kind)}
    return Y, kind, table


@pytest.fixture
def tab(browser, tmp_path, crowd):
    pytest.importorskip("bokeh")
    Y, kind, table = crowd
    with map_pages(browser, tmp_path) as visit:
        yield visit(eq.page(Y, [f"type {k}" for k in kind], table=table, title="Crowd"))


def rows_of(tab):
    """Return the rows of the summary as lists of texts."""
    lines = tab.locator("#summary tr").all()
    return [line.locator("th, td").all_inner_texts() for line in lines]


def test_classes_of_one_colour_have_different_marks():
    codes = np.arange(60)
    colors = assign_colors(Classes("", codes, tuple(map(str, codes))), np.random.default_rng(0).normal(size=(60, 2)))
    marks = assign_marks(colors)
    assert not marks[:10].any() and marks.max() < len(MARKS)
    for color in range(10):
        same = marks[colors == color]
        assert len(set(same[: len(MARKS)])) == min(len(same), len(MARKS))


def test_summary_counts_classes_and_compares_medians(tab, crowd):
    _, kind, table = crowd
    tab.fill("#filter", "TYPE 25")
    assert tab.locator("#legend .name").all_inner_texts() == ["type 25"]
    tab.locator("#legend button").click()
    rows = rows_of(tab)
    assert rows[:2] == [["class", "selected", "of"], ["type 25", "10", "10"]]
    assert rows[2] == ["median", "selected", "rest"]
    rest = kind != 25
    expected = {name: [np.nanmedian(values[~rest]), np.nanmedian(values[rest])] for name, values in table.items()}
    found = {name: [float(a), float(b)] for name, a, b in rows[3:]}
    assert found.keys() == expected.keys()
    for name, medians in expected.items():
        assert found[name] == pytest.approx(medians, rel=1e-4)
    assert rows[-1][0] == "noise"  # its medians differ least
    tab.click("#clear")
    assert rows_of(tab) == []
    tab.fill("#filter", "no such class")
    assert tab.inner_text("#legend") == "no class found"


def test_all_names_appear_at_some_zoom_and_the_largest_classes_first(browser, tmp_path):
    pytest.importorskip("bokeh")
    Y = np.array([[0.0, 0.0], [0.4, 0.0], [0.4, 0.0], [40.0, 40.0]])
    with map_pages(browser, tmp_path) as visit:
        tab = visit(eq.page(Y, ["a class with one point", "a class with two points", "a class with two points", "far"]))
        names = f"{VIEW}.model.document.get_model_by_name('names').data.text"
        assert tab.evaluate(names) == ["a class with two points", "far"]
        tab.fill("#search", "a class with one")
        until(tab, "document.getElementById('matches').textContent === '1 point found'")
        tab.click("#zoom")
        until(tab, f"{names}.length === 2 && !{names}.includes('far')")


def test_a_class_is_named_where_it_is_visible(tab):
    """If the centre of a class is outside the visible region, its name is at a visible point of the class."""
    names = f"{VIEW}.model.document.get_model_by_name('names').data"
    tab.evaluate(
        f"() => {{ const {{x_range, y_range}} = {VIEW}.model; x_range.setv({{start: -0.2, end: 5}}); "
        "y_range.setv({start: -0.2, end: 5}) }"
    )
    until(tab, f"{names}.text.length === 1 && {names}.x[0] > -0.2 && {names}.y[0] > -0.2")
    assert tab.evaluate(names)["text"] == ["type 0"]


def ink(tab):
    """Return the mean distance of the pixels of the map from white, and the fraction of pixels that are not white."""
    next_frames(tab)
    distance = 1 - imread(io.BytesIO(tab.locator("#dots").screenshot()))[..., :3].min(axis=2)
    return distance.mean(), (distance > 0.02).mean()


def test_size_and_opacity_change_the_dots(tab):
    def set_range(name, value):
        change = "(element, value) => { element.value = value; element.dispatchEvent(new Event('input')) }"
        tab.locator(f"#{name}").evaluate(change, value)

    tab.uncheck("#names")
    strength, area = ink(tab)
    set_range("opacity", 25)
    faint, same = ink(tab)
    assert faint < 0.5 * strength and same == pytest.approx(area, rel=0.2)
    set_range("size", 1)
    assert ink(tab)[1] > 2 * area


def test_picture_has_the_map_and_the_legend(tab):
    with tab.expect_download() as download:
        tab.click("#picture")
    assert download.value.suggested_filename == "Crowd.png"
    with open(download.value.path(), "rb") as file:
        image = imread(io.BytesIO(file.read()), format="png")
    frame = tab.evaluate(f"() => {{ const {{width, height}} = {VIEW}.frame.bbox; return [height, width] }}")
    assert image.shape[0] > 2 * frame[0] and image.shape[1] > 2 * (frame[1] + 150)
    inside, legend = image[80:-30, 40 : int(2 * frame[1])], image[80:-30, -384:]
    assert (np.ptp(inside[..., :3], axis=2) > 0.3).sum() > 500  # coloured pixels
    assert (np.ptp(legend[..., :3], axis=2) > 0.3).sum() > 500


def test_map_can_be_used_by_keyboard(tab, crowd):
    def region():
        return np.array(
            tab.evaluate(
                f"() => {{ const {{x_range: x, y_range: y}} = {VIEW}.model; return [x.start, x.end, y.start, y.end] }}"
            )
        )

    tab.focus("#map")
    start = region()
    tab.keyboard.press("ArrowRight")
    moved = region()
    assert (moved[:2] > start[:2]).all() and (moved[2:] == start[2:]).all()
    tab.keyboard.press("+")
    assert np.diff(region()[:2]) == pytest.approx(np.diff(moved[:2]) / 1.3)
    tab.keyboard.press("0")
    assert region() == pytest.approx(start)
    tab.fill("#search", "type 7")
    until(tab, "document.getElementById('matches').textContent === '10 points found'")
    tab.focus("#map")
    rows = []
    for key in "nnp":
        tab.keyboard.press(key)
        rows.append(int(tab.get_attribute("#tip", "data-row")))
    expected = np.flatnonzero(crowd[1] == 7)
    assert rows == [expected[0], expected[1], expected[0]] and tab.is_visible("#tip")
    tab.keyboard.press("Escape")
    assert not tab.is_visible("#tip")


def test_visible_points_can_be_selected(tab, crowd):
    tab.fill("#search", "type 7")
    until(tab, "document.getElementById('matches').textContent === '10 points found'")
    tab.click("#zoom")
    next_frames(tab)
    tab.click("#enclose")
    low, high = (
        tab.evaluate(f"() => {{ const {{x_range: x, y_range: y}} = {VIEW}.model; return [x.{side}, y.{side}] }}")
        for side in ("start", "end")
    )
    inside = ((crowd[0] >= low) & (crowd[0] <= high)).all(axis=1).sum()
    assert tab.inner_text("#selected") == f"{inside} points" and inside >= 10


def test_tooltip_of_many_columns_is_short_and_contains_the_colour(browser, tmp_path):
    table = {f"c{j}": np.arange(9) + j / 2 for j in range(40)}
    with map_pages(browser, tmp_path) as visit:
        tab = visit(eq.page(np.stack(np.divmod(np.arange(9.0), 3), axis=1), "c30", table=table))
        tab.locator("#map").focus()
        tab.keyboard.press("n")
        names = tab.locator("#tip th").all_inner_texts()
        assert names == ["row", *(f"c{j}" for j in range(12)), "c30", "…"]
        assert tab.locator("#tip td").last.inner_text() == "27 more"

"""The HTML page of a map in a real browser without a network: hover, lasso, search, colours and export."""

import csv
import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.path import Path
from support.browser import VIEW, map_pages, next_frames, on_screen, until, watched

import equipoise as eq
from equipoise.views import page as page_module
from equipoise.views.style import DARK, LIGHT

N = 240
NAMES = np.array(["cat", "dog", "</script><b>& bird"])


@pytest.fixture(scope="module")
def animals():
    """A page of three groups with numbers, identifiers with commas and quotes, a missing value, and images."""
    pytest.importorskip("bokeh")
    rng = np.random.default_rng(0)
    number = np.arange(N) % 3
    Y = rng.normal(size=(N, 2)) + 9 * np.array([[0, 0], [1, 0], [0, 1]])[number]
    weight = rng.gamma(2.0, size=N)
    weight[5] = np.nan
    table = pd.DataFrame(
        {
            "id": [f'no. {i}, "x"' for i in range(N)],
            "weight": weight,
            "year": 1900 + np.arange(N),
            "big": 2**60 + np.arange(N),
        }
    )
    images = np.zeros((N, 4, 3), np.uint8)
    images[:, 0, 0] = np.arange(N)
    kind = pd.Series(NAMES[number], name="kind")
    page = eq.page(Y, kind, table=table, images=images, title="Animals </title><b>& plants")
    return SimpleNamespace(Y=Y, number=number, table=table, page=page)


@pytest.fixture
def visit(browser, tmp_path):
    """Return a function that opens a page in the browser."""
    with map_pages(browser, tmp_path) as visit:
        yield visit


def tooltip(tab):
    """Return the tooltip as a dict from column to text."""
    rows = tab.locator("#tip tr").all()
    return {row.locator("th").inner_text(): row.locator("td").inner_text() for row in rows}


def select_lasso_tool(tab):
    tab.locator(".bk-tool-icon-lasso-select").first.click()


def draw_lasso(tab, corners):
    places = on_screen(tab, corners)
    tab.mouse.move(*places[0])
    tab.mouse.down()
    for place in [*places[1:], places[0]]:
        tab.mouse.move(*place, steps=5)
    tab.mouse.up()


def exported_rows(tab):
    """Export the selection and return its rows."""
    with tab.expect_download() as download:
        tab.click("#export")
    assert download.value.suggested_filename == "selection.csv"
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def most_isolated_row(Y):
    """Return the row that is farthest from its nearest neighbour."""
    d2 = ((Y[:, None] - Y[None]) ** 2).sum(axis=2) + np.diag(np.full(len(Y), np.inf))
    return int(d2.min(axis=1).argmax())


def drawn_colors(tab):
    """Return the colours drawn on the canvas as hexadecimal strings."""
    image = tab.locator("#dots").screenshot()
    from matplotlib.image import imread

    red, green, blue = (255 * imread(io.BytesIO(image))[..., :3]).round().astype(int).reshape(-1, 3).T
    return {f"#{color:06x}" for color in np.unique(red << 16 | green << 8 | blue)}


def has_color(colors, wanted, tolerance=45):
    """Return whether a drawn colour is within `tolerance` of the wanted one."""
    split = lambda color: np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])  # noqa: E731
    return any(np.abs(split(color) - split(wanted)).max() < tolerance for color in colors)


def test_hover_shows_the_nearest_point(animals, visit):
    tab = visit(animals.page)
    assert tab.title() == "Animals </title><b>& plants" and tab.inner_text("h1") == "Animals </title><b>& plants"
    row = most_isolated_row(animals.Y)
    (x, y), _ = on_screen(tab, [animals.Y[row], [0, 0]])
    tab.mouse.move(x + 3, y - 3)
    tab.wait_for_selector("#tip", state="visible")
    weight = float(tooltip(tab)["weight"])
    assert weight == pytest.approx(animals.table["weight"][row], rel=1e-4)
    assert tooltip(tab) | {"weight": ""} == {
        "row": str(row),
        "kind": NAMES[animals.number[row]],
        "id": f'no. {row}, "x"',
        "weight": "",
        "year": str(1900 + row),
        "big": str(2**60 + row),
    }
    first = tab.evaluate(
        "Array.from(document.querySelector('#tip canvas').getContext('2d').getImageData(0, 0, 2, 1).data)"
    )
    assert first == [row, row, row, 255, 0, 0, 0, 255]
    mark = tab.locator("#mark").bounding_box()
    assert abs(mark["x"] + mark["width"] / 2 - x) < 1.5 and abs(mark["y"] + mark["height"] / 2 - y) < 1.5
    tip = tab.locator("#tip").bounding_box()
    assert 0 < tip["x"] - x < 40 or 0 < x - tip["x"] - tip["width"] < 40
    corner = tab.evaluate(f"() => {{ const {{left, top}} = {VIEW}.el.getBoundingClientRect(); return [left, top] }}")
    tab.mouse.move(corner[0] + 60, corner[1] + 60)
    tab.wait_for_selector("#tip", state="hidden")


def test_axes_stay_equal_when_the_window_is_resized(animals, visit):
    tab = visit(animals.page)
    for width, height in ((1280, 1000), (1100, 600)):
        tab.set_viewport_size({"width": width, "height": height})
        until(tab, f"Math.abs({VIEW}.el.getBoundingClientRect().height - innerHeight) < 120")
        until(tab, f"document.getElementById('dots').style.height === `${{{VIEW}.frame.bbox.height}}px`")
        next_frames(tab)
        (x0, y0), (x1, _), (_, y1) = on_screen(tab, [[0, 0], [1, 0], [0, 1]])
        assert x1 - x0 == pytest.approx(y0 - y1, rel=1e-3) and x1 - x0 > 15
        places = np.array(on_screen(tab, animals.Y))
        frame = tab.locator("#dots").bounding_box()
        low, size = np.array([frame["x"], frame["y"]]), np.array([frame["width"], frame["height"]])
        assert (places > low).all() and (places < low + size).all()


def test_lasso_selection_is_exported_as_csv(animals, visit):
    tab = visit(animals.page)
    assert tab.is_disabled("#export")
    select_lasso_tool(tab)
    corners = np.array([[-1.4, -2.0], [3.1, -1.5], [7.7, 2.1], [0.4, 1.2]])
    draw_lasso(tab, corners)
    expected = np.flatnonzero(Path(corners).contains_points(animals.Y))
    assert 20 < len(expected) < 150
    until(tab, "document.getElementById('selected').textContent !== 'no points'")
    rows = exported_rows(tab)
    assert [int(row["row"]) for row in rows] == expected.tolist()
    assert tab.inner_text("#selected") == f"{len(rows)} points"
    for row, i in zip(rows, expected, strict=True):
        assert row["kind"] == NAMES[animals.number[i]] and row["id"] == f'no. {i}, "x"'
        assert row["year"] == str(1900 + i) and row["big"] == str(2**60 + i)
        assert float(row["x"]) == pytest.approx(animals.Y[i, 0], rel=1e-6)
        if i != 5:
            assert float(row["weight"]) == pytest.approx(animals.table["weight"][i], rel=1e-6)
    far = np.array([[-3.0, 6.0], [3.0, 6.0], [3.0, 12.0], [-3.0, 12.0]])
    tab.keyboard.down("Shift")
    draw_lasso(tab, far)
    tab.keyboard.up("Shift")
    both = np.union1d(expected, np.flatnonzero(Path(far).contains_points(animals.Y)))
    until(tab, f"document.getElementById('selected').textContent === '{len(both)} points'")
    tab.click("#clear")
    assert tab.inner_text("#selected") == "no points" and tab.is_disabled("#export")


def test_missing_number_is_exported_as_an_empty_cell(animals, visit):
    tab = visit(animals.page)
    tab.fill("#search", "no. 5,")
    until(tab, "document.getElementById('matches').textContent === '1 point found'")
    tab.click("#take")
    (row,) = exported_rows(tab)
    assert row["row"] == "5" and row["weight"] == ""


def test_search_finds_text_and_rows_and_zooms_to_them(animals, visit):
    tab = visit(animals.page)

    def found(text):
        tab.fill("#search", text)
        until(tab, f"document.getElementById('matches').dataset.of === {text.lower()!r}")
        return int(tab.inner_text("#matches").split()[0])

    assert found("BIRD") == N // 3  # case-insensitive
    assert found("1907") == 1
    assert found("no such thing") == 0 and tab.is_disabled("#zoom")
    assert found("17") == sum("17" in str(i) for i in range(N)) + sum(
        "17" in str(2**60 + i) and "17" not in str(i) for i in range(N)
    )
    assert found("dog") == N // 3
    tab.click("#zoom")
    next_frames(tab)
    dogs = np.array(on_screen(tab, animals.Y[animals.number == 1]))
    frame = tab.locator("#dots").bounding_box()
    assert np.ptp(dogs, axis=0).max() > 0.8 * min(frame["width"], frame["height"])
    tab.click("#take")
    assert [int(row["row"]) for row in exported_rows(tab)] == np.flatnonzero(animals.number == 1).tolist()


def test_colours_follow_the_chosen_column_and_theme(animals, visit):
    tab = visit(animals.page)
    assert tab.locator("#color option").all_inner_texts() == ["one colour", "kind", "weight", "year"]  # no identifiers
    names = tab.locator("#legend .name").all_inner_texts()
    assert names == sorted(NAMES) and not tab.locator("#legend b").count()  # names are escaped
    seen = drawn_colors(tab)
    assert all(has_color(seen, color) for color in LIGHT.colors[:3]) and not has_color(seen, LIGHT.colors[3])
    tab.select_option("#color", label="weight")
    assert tab.is_visible("#scale") and not tab.locator("#legend li").count()
    known = animals.table["weight"].dropna()
    ends = [float(text) for text in tab.locator("#scale .ends span").all_inner_texts()]
    assert ends == pytest.approx(np.quantile(known, [0.01, 0.99]), rel=1e-4)
    tab.click("#theme")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 28)"
    assert has_color(drawn_colors(tab), DARK.background, 2)
    tab.select_option("#color", label="one colour")
    assert has_color(drawn_colors(tab), DARK.colors[0])


def test_points_without_a_class_are_drawn_below_the_others(visit):
    """In pairs of coincident points of which one has no class, the other is visible, whichever comes first."""
    pytest.importorskip("bokeh")
    places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    classes = np.array([None, "a", "a", None, "a", None, None, "a"], dtype=object)
    tab = visit(eq.page(np.repeat(places, 2, axis=0), classes))
    tab.uncheck("#names")
    tab.click("#theme")  # redrawing keeps the order
    from matplotlib.image import imread

    image = imread(io.BytesIO(tab.screenshot()))
    for x, y in on_screen(tab, places):
        assert has_color({to_hex(image[round(y), round(x), :3])}, DARK.colors[0])


def test_class_names_do_not_overlap_and_appear_when_zoomed_in(visit):
    pytest.importorskip("bokeh")
    Y = np.array([[0.0, 0.0], [0.1, 0.0], [30.0, 0.0], [0.0, 30.0]])
    tab = visit(eq.page(Y, ["one long name", "another of them", "far", "away"]))
    shown = f"() => {VIEW}.model.document.get_model_by_name('names').data.text"
    assert sorted(tab.evaluate(shown)) == ["another of them", "away", "far"]
    tab.fill("#search", "o")  # matches the two close points
    until(tab, "document.getElementById('matches').textContent === '2 points found'")
    tab.click("#zoom")
    until(tab, f"['another of them', 'one long name'].every((name) => ({shown})().includes(name))")
    tab.uncheck("#names")
    assert tab.evaluate(shown) == []


def test_click_on_the_legend_selects_a_class(animals, visit):
    tab = visit(animals.page)
    tab.locator("#legend button").filter(has_text="dog").click()
    assert tab.inner_text("#selected") == f"{N // 3} points"
    assert {row["kind"] for row in exported_rows(tab)} == {"dog"}


def test_notebook_shows_the_page_in_an_iframe(animals, browser, tmp_path):
    with watched(browser) as tab:
        (tmp_path / "notebook.html").write_text(f"<body>{animals.page._repr_html_()}</body>", encoding="utf-8")
        tab.goto((tmp_path / "notebook.html").as_uri())
        frame = tab.frame_locator("iframe")
        frame.locator("body[data-ready=yes]").wait_for()
        assert frame.locator("h1").inner_text() == "Animals </title><b>& plants"


@pytest.mark.parametrize("d", [1, 5])
def test_page_states_how_other_dimensions_are_projected(d):
    pytest.importorskip("bokeh")
    text = eq.page(np.random.default_rng(0).normal(size=(30, d))).html
    assert re.search(
        r"This plot shows (a map on a line|the first two principal components of a map in \d dimensions)", text
    )


def test_bokeh_does_not_outline_the_map(animals):
    assert re.search('"outline_line_color": ?null', animals.page.html)  # else it is drawn around a class name as well


def test_page_size_per_point_is_bounded():
    pytest.importorskip("bokeh")
    Y = np.random.default_rng(0).normal(size=(4000, 2))
    small, large = (eq.page(Y[:n], np.arange(n) % 7) for n in (1000, 4000))
    # Two 4-byte floats and a class per point, times 4/3 for base64; random numbers hardly compress.
    assert len(large.html) - len(small.html) < 3000 * 4 / 3 * (2 * 4 + 1)
    assert repr(small) == f"<page of 1,000 points, {len(small.html.encode()) / 2**20:.1f} MB; save(path) writes it>"


def test_invalid_arguments_raise(monkeypatch):
    pytest.importorskip("bokeh")
    Y = np.zeros((3, 2))
    with pytest.raises(ValueError, match="color='age' is not a column of the table; the columns are 'sex'"):
        eq.page(Y, "age", table={"sex": list("fmf")})
    with pytest.raises(
        ValueError, match=r"table\['sex'\] must have shape \(3,\), one value per point, got shape \(2,\)"
    ):
        eq.page(Y, table={"sex": list("fm")})
    with pytest.raises(ValueError, match="a data frame or a mapping of names to values, got list"):
        eq.page(Y, table=[1, 2, 3])
    with pytest.raises(ValueError, match="`names` requires `color`; pass the class of each point as `color`"):
        eq.page(Y, names=["a"])
    monkeypatch.setattr(page_module, "MAX_IMAGE_BYTES", 10)
    with pytest.raises(ValueError, match="a page can contain at most 0 MB"):
        eq.page(Y, images=np.zeros((3, 2, 2), np.uint8))


def test_missing_bokeh_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh.resources", None)
    with pytest.raises(ImportError, match=r'page\(\) needs Bokeh: pip install "equipoise\[pages\]"'):
        eq.page(np.zeros((3, 2)))


def test_color_may_name_a_column_of_the_table():
    pytest.importorskip("bokeh")
    by_name = eq.page(np.eye(3, 2), "sex", table={"age": [1.5, 2.5, 3.5], "sex": [0, 1, 0]}, names=["f", "m"])
    assert '"names": ["f", "m"]' in by_name.html and '"color": 1' in by_name.html


def test_only_the_chosen_column_is_coloured_when_classes_are_many():
    pytest.importorskip("bokeh")
    names = [f"class {i % 300}" for i in range(900)]
    page = eq.page(np.random.default_rng(0).normal(size=(900, 2)), names, table={"other": names[::-1]})
    assert page.html.count('"colored": true') == 1 and page.html.count('"color_indices": ') == 1


def pointed_row(tab):
    """Return the row of the tooltip and the position of the ring, or None if they are hidden."""
    return tab.evaluate(
        """() => {
            const [tip, mark] = ["tip", "mark"].map((id) => document.getElementById(id))
            return tip.hidden || mark.hidden ? null : [Number(tip.dataset.row), mark.style.left, mark.style.top]
        }"""
    )


def test_ring_and_tooltip_follow_a_wheel_zoom(visit):
    pytest.importorskip("bokeh")
    Y = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0], [5.0, 5.0]])
    tab = visit(eq.page(Y))
    ((x, y),) = on_screen(tab, Y[4:])
    tab.mouse.move(x + 8, y)  # within reach of the point, and no longer after zooming in
    until(tab, "document.getElementById('tip').hidden === false")
    assert pointed_row(tab)[0] == 4
    tab.mouse.wheel(0, -1500)
    until(tab, f"{VIEW}.model.x_range.end - {VIEW}.model.x_range.start < 6")
    next_frames(tab)
    ((x, y),) = on_screen(tab, Y[4:])
    shown = pointed_row(tab)
    assert shown is None or [float(side.removesuffix("px")) for side in shown[1:]] == pytest.approx([x, y], abs=1)


def test_page_has_a_policy_that_blocks_other_scripts(animals, browser, tmp_path):
    """Neither an added script nor an event handler nor eval runs, and nothing is loaded."""
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', animals.page.html)
    assert "unsafe-eval" not in policy and policy.startswith("default-src 'none'; script-src 'sha256-")
    context = browser.new_context(offline=True)
    tab, blocked = context.new_page(), []
    tab.on("console", lambda message: blocked.append(message.text) if "Content Security" in message.text else None)
    evil = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
    (tmp_path / "page.html").write_text(animals.page.html.replace("</main>", f"{evil}</main>"), encoding="utf-8")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("body[data-ready=yes]")
    tab.evaluate("setTimeout('document.title = \"run\"', 0)")
    next_frames(tab)
    assert tab.title() == "Animals </title><b>& plants" and len(blocked) >= 3
    context.close()


def test_title_must_be_text():
    pytest.importorskip("bokeh")
    with pytest.raises(ValueError, match="title must be text, got 3"):
        eq.page(np.eye(9)[:, :2], title=3)

"""The studio in the dark theme, in narrow windows, with two runs, and by keyboard alone."""

import numpy as np
import pytest
from support.browser import until
from support.studio import MODEL, running, text

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
DARK, LIGHT = "rgb(20, 22, 28)", "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def studio():
    pytest.importorskip("bokeh")
    with running("two_lines", limit=20_000) as studio:
        yield studio


def test_theme_is_that_of_the_system_until_another_is_chosen(studio, visit):
    tab = visit(studio.url, scheme="dark")
    assert tab.evaluate(BACKGROUND) == DARK and tab.inner_text("#theme") == "Light theme"
    widget = "() => getComputedStyle(Bokeh.index.find_one({}).el.shadowRoot.querySelector('{}')).backgroundColor"
    select = widget.format(MODEL.format(name="data"), "select")
    assert tab.evaluate(select) == "rgb(32, 36, 46)"
    axis = f"{MODEL.format(name='loss')}.below[0].major_label_text_color"
    assert tab.evaluate(axis) == "#e6e8ee"
    tab.focus("#theme")
    tab.keyboard.press("Enter")
    assert tab.evaluate(BACKGROUND) == LIGHT and tab.evaluate(select) == LIGHT
    assert tab.evaluate(axis) == "#30343f"
    again = visit(studio.url, context=tab.context)
    assert again.evaluate(BACKGROUND) == LIGHT  # remembered, although the system is dark


def test_narrow_windows_scroll_in_one_direction(studio, visit):
    tab = visit(studio.url, width=400, height=800)
    wide, high = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert wide == 400 and high > 1000
    tops = [tab.locator(name).bounding_box()["y"] for name in ("header", "#maps", "#transport", "#controls", "#side")]
    assert tops == sorted(tops)
    canvas = tab.locator("#dots-a").bounding_box()
    assert canvas["width"] > 330 and canvas["height"] > 300


def test_two_runs_are_numbered_and_a_link_keeps_the_active_one(studio, visit):
    link = "?b.method=umap&active=1&color=trust&point=3"
    tab = visit(studio.url + link, width=1400, height=900)
    until(tab, f"{text('title b')}.startsWith('2 · UMAP · iteration')")
    assert tab.evaluate(text("title a")).startswith("1 · t-SNE")
    until(tab, f"{MODEL.format(name='method')}.value === 'umap' && {MODEL.format(name='which')}.active === 1")
    until(tab, f"{text('saved')} === 'Save the second map as'")
    until(tab, f"/first map 0?1?[.][0-9]+ at iteration 0; second map [01][.][0-9]+/.test({text('legend')})")
    until(tab, f"{text('forces')}.includes('in the second map')")
    tab.get_by_role("button", name="Share link").click()
    until(tab, f"{MODEL.format(name='link')}.value.includes('active=1')")
    boxes = [tab.locator(f"#dots-{name}").bounding_box() for name in "ab"]
    assert boxes[0]["y"] == boxes[1]["y"] and all(0.8 < box["width"] / box["height"] < 1.3 for box in boxes)
    tab.set_viewport_size({"width": 900, "height": 700})
    until(tab, "document.getElementById('panel-b').getBoundingClientRect().y > innerHeight / 3")


def test_map_can_be_used_by_keyboard(studio, visit):
    tab = visit(studio.url)
    region = f"() => {{ const {{x_range: x, y_range: y}} = {MODEL.format(name='map a')}; "
    region += "return [x.start, x.end, y.start, y.end] }"
    tab.locator(".map").first.focus()
    start = np.array(tab.evaluate(region))
    tab.keyboard.press("ArrowUp")
    moved = np.array(tab.evaluate(region))
    assert (moved[:2] == start[:2]).all() and (moved[2:] > start[2:]).all()
    tab.keyboard.press("-")
    assert np.ptp(tab.evaluate(region)[:2]) == pytest.approx(1.3 * np.ptp(moved[:2]))
    tab.keyboard.press("0")
    assert tab.evaluate(region) == pytest.approx(start)
    tab.keyboard.press("n")
    until(tab, f"{text('forces')}.includes('Row 0')")
    tab.keyboard.press("p")
    until(tab, f"{text('forces')}.includes('Row 199')")
    tab.keyboard.press("Escape")
    until(tab, f"{text('forces')}.includes('Click a point')")
    tab.keyboard.press(" ")
    until(tab, f"{MODEL.format(name='play')}.label === 'Pause'")
    tab.keyboard.press(" ")
    until(tab, f"{MODEL.format(name='play')}.label === 'Play'")

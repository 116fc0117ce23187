"""The widget in a browser, without a notebook: a model in JavaScript has the state of the widget in Python."""

import re

import numpy as np
import pytest
from matplotlib.path import Path
from support.browser import launched, next_frames, until, watched

pytest.importorskip("anywidget", reason="the widget needs anywidget")

from support.widget_page import lasso, shown, to_map

import equipoise as eq

pytestmark = pytest.mark.browser

N = 2000
RNG = np.random.RandomState(0)
Y = RNG.normal(size=(N, 2)) * [30, 20]
TABLE = {"half": np.where(Y[:, 0] < 0, "left", "right"), "height": Y[:, 1]}


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


def test_lasso_and_box_select_the_points_inside(browser):
    widget = eq.widget(Y, TABLE, color="half")
    with watched(browser) as tab, shown(tab, widget):
        corners = lasso(tab)
        inside = Path(to_map(tab, corners)).contains_points(Y.astype(np.float32))
        assert 100 < inside.sum() < N - 100
        assert widget.selection.tolist() == np.flatnonzero(inside).tolist()
        assert f"{inside.sum():,} selected" in tab.inner_text(".eq-chosen")
        tab.get_by_role("button", name="box", exact=True).click()
        tab.keyboard.down("Alt")
        low, high = to_map(tab, lasso(tab, [[0.5, 0.2], [0.9, 0.9]], choose=False))[::1]
        tab.keyboard.up("Alt")
        box = ((np.minimum(low, high) <= Y) & (np.maximum(low, high) >= Y)).all(axis=1)
        assert widget.selection.tolist() == np.flatnonzero(inside & ~box).tolist()
        tab.locator(".eq-stage").press("Escape")
        assert len(widget.selection) == 0 and "none selected" in tab.inner_text(".eq-chosen")


def test_selection_set_in_python_is_shown(browser):
    widget = eq.widget(Y, TABLE)
    with watched(browser) as tab, shown(tab, widget) as push:
        before = tab.locator(".eq-stage").screenshot()
        widget.selection = np.arange(10)
        push()
        next_frames(tab)
        assert "10 selected" in tab.inner_text(".eq-chosen") and tab.locator(".eq-stage").screenshot() != before


def test_hover_shows_the_values_of_the_nearest_point(browser):
    widget = eq.widget(Y, TABLE, labels=[f"point {i}" for i in range(N)], images=RNG.uniform(size=(N, 3, 4)))
    with watched(browser) as tab, shown(tab, widget):
        box = tab.locator(".eq-stage").bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        at = to_map(tab, [[0.5, 0.5]])[0]
        row = int(((Y - at) ** 2).sum(axis=1).argmin())
        until(tab, f"document.querySelector('.eq-tip').innerText.includes('point {row}')")
        assert widget.hovered == row
        assert re.search(rf"half\s+{TABLE['half'][row]}", tab.inner_text(".eq-tip"))
        assert tab.locator(".eq-tip canvas").is_visible()


def test_search_legend_and_color_work_by_mouse_and_keyboard(browser):
    widget = eq.widget(Y, TABLE, color="half")
    with watched(browser) as tab, shown(tab, widget):
        tab.get_by_role("button", name=re.compile("left")).click()
        assert widget.selection.tolist() == np.flatnonzero(Y[:, 0] < 0).tolist()
        tab.locator(".eq-search input").fill("RIGHT")
        until(tab, "document.querySelector('.eq-search').innerText.includes('found')")
        tab.get_by_role("button", name="select", exact=True).press("Enter")
        assert widget.selection.tolist() == np.flatnonzero(Y[:, 0] >= 0).tolist()
        tab.locator(".eq-panel select").select_option("height")
        assert widget.color == "height" and tab.locator(".eq-bar").is_visible()
        stage = tab.locator(".eq-stage")
        views = [tab.locator(".eq-stage").get_attribute("data-view")]
        for key in ("ArrowLeft", "ArrowUp", "+", "-", "Home"):
            stage.press(key)
            next_frames(tab)
            views.append(stage.get_attribute("data-view"))
        assert len(set(views[:4])) == 4 and views[-1] == views[0]


def test_the_wheel_zooms_only_after_a_click(browser):
    with watched(browser) as tab, shown(tab, eq.widget(Y)):
        stage = tab.locator(".eq-stage")
        before = stage.get_attribute("data-view")
        stage.hover()
        tab.mouse.wheel(0, -200)
        until(tab, "!document.querySelector('.eq-hint').hidden")
        assert stage.get_attribute("data-view") == before
        stage.click()
        tab.mouse.wheel(0, -200)
        until(tab, f"document.querySelector('.eq-stage').dataset.view !== {before!r}")


def test_map_and_selection_are_saved_as_files(browser, tmp_path):
    widget = eq.widget(Y, TABLE, color="half")
    widget.selection = [1, 5]
    with watched(browser) as tab, shown(tab, widget):
        with tab.expect_download() as waiting:
            tab.get_by_role("button", name="CSV").click()
        assert waiting.value.path().read_text(encoding="utf-8") == widget.to_csv()
        with tab.expect_download() as waiting:
            tab.get_by_role("button", name="PNG").click()
        assert waiting.value.path().read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("background", "theme"), [("#ffffff", "light"), ("#111111", "dark")])
def test_theme_of_the_notebook_is_used_at_400_pixels(browser, background, theme):
    with watched(browser) as tab, shown(tab, eq.widget(Y, TABLE, color="half"), background):
        assert tab.locator(".eq-widget").get_attribute("data-theme") == theme
        tab.set_viewport_size({"width": 400, "height": 900})
        next_frames(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 400
        stage, panel = (tab.locator(name).bounding_box() for name in (".eq-stage", ".eq-panel"))
        assert stage["width"] > 330 and panel["y"] > stage["y"] + stage["height"] - 1


def test_a_running_fit_moves_the_points(browser):
    widget = eq.widget(data=TABLE, color="half")
    with watched(browser) as tab, shown(tab, widget) as push:
        assert "no map yet" in tab.inner_text(".eq-status")
        for iteration in (0, 50):
            widget(iteration, 1.5, Y * (1 + iteration))
            push()
            next_frames(tab)
            assert f"iteration {iteration}, loss 1.5" in tab.inner_text(".eq-status")
            low = to_map(tab, [[0, 1]])[0]
            assert (low < Y.min(axis=0) * (1 + iteration)).all()

"""The widget in JupyterLab, in a browser: the selection reaches Python, and a saved notebook contains a picture."""

import json
import time

import numpy as np
import pytest
from matplotlib.path import Path
from support.browser import launched
from support.jupyter import jupyter_lab, run_cell, write_notebook
from support.widget_page import lasso, to_map

for package in ("anywidget", "jupyterlab", "ipykernel"):
    pytest.importorskip(package, reason=f"the widget is tested in JupyterLab, which needs {package}")

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

N = 200_000
MAKE = f"""
import os
import numpy as np
import equipoise as eq

Y = np.random.RandomState(0).normal(size=({N}, 2)) * [30, 20]
w = eq.widget(Y, {{"height": Y[:, 1]}}, color="height")

def save(change):
    np.save("selection.part.npy", change.new)
    os.replace("selection.part.npy", "selection.npy")

w.observe(save, "selection")
w
"""
SET = "w.selection = np.arange(5)"


def test_a_lasso_in_jupyterlab_sets_the_selection_in_python(tmp_path):
    write_notebook(tmp_path / "map.ipynb", MAKE, SET)
    file = tmp_path / "selection.npy"
    with launched() as browser, jupyter_lab(tmp_path) as address:
        tab = browser.new_page(viewport={"width": 1280, "height": 1000})
        tab.set_default_timeout(240_000)
        outside, errors = [], []
        tab.on("request", lambda request: None if "127.0.0.1" in request.url else outside.append(request.url))
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(address("map.ipynb"))
        run_cell(tab)
        tab.wait_for_selector(".eq-stage[data-view]")
        corners = lasso(tab)
        polygon = Path(to_map(tab, corners))
        wait_until(file.exists)
        Y = (np.random.RandomState(0).normal(size=(N, 2)) * [30, 20]).astype(np.float32)
        inside = np.flatnonzero(polygon.contains_points(Y))
        selection = np.load(file)
        assert selection.dtype == np.int64 and 10_000 < len(inside) < 190_000
        np.testing.assert_array_equal(selection, inside)
        before = tab.locator(".eq-stage").get_attribute("data-view")
        tab.locator(".eq-stage").press("ArrowLeft")  # moves the map, and not to another cell
        tab.wait_for_function(f"document.querySelector('.eq-stage').dataset.view !== {before!r}")
        tab.locator(".eq-stage").press("Escape")
        wait_until(lambda: len(np.load(file)) == 0)
        tab.keyboard.press("Control+s")
        wait_until(lambda: "image/png" in (tmp_path / "map.ipynb").read_text(encoding="utf-8"))
        (output,) = json.loads((tmp_path / "map.ipynb").read_text(encoding="utf-8"))["cells"][0]["outputs"]
        assert "application/vnd.jupyter.widget-view+json" in output["data"]
        run_cell(tab, 1)
        tab.wait_for_function("document.querySelector('.eq-chosen').innerText.includes('5 selected')")
        assert not outside and not errors


def wait_until(condition, seconds=240):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not true after {seconds} seconds"
        time.sleep(0.05)

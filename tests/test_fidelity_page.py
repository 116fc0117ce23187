"""The fidelity page in a real browser, without a network: no error, and a click tells the neighbours of a point."""

import re
import shutil

import numpy as np
import pytest

import equipoise as eq
from equipoise.evaluate import sample as sampling

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NAMES = np.array(["cat", "dog", "</script><b>& bird"])


@pytest.fixture(scope="module")
def report():
    pytest.importorskip("bokeh")
    rng = np.random.default_rng(0)
    number = np.arange(240) % 3
    X = rng.normal(size=(240, 6)) + 4 * np.eye(6)[number]
    return eq.evaluate(X, eq.PCA(n_components=2).fit_transform(X), NAMES[number], k=8)


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no Chromium is installed ({', '.join(BROWSERS)})")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page of a report; in the end there must have been no error and no request to anywhere."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 1000})
    tab, trouble = context.new_page(), []
    tab.on("console", lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("request", lambda request: trouble.append(request.url) if request.url.startswith("http") else None)

    def visit(report):
        report.to_html(tmp_path / "page.html")
        tab.goto((tmp_path / "page.html").as_uri())
        tab.wait_for_selector("body[data-ready=yes]")
        return tab

    yield visit
    assert not trouble
    context.close()


def screen_place(tab, report, row):
    """Where the page shows a row of the data, in pixels."""
    box = tab.evaluate(
        """() => {
            const view = [...Bokeh.index.all_views()].find((view) => view.model.name === "plot")
            const {left, top} = view.canvas.ui_event_bus.hit_area.getBoundingClientRect()
            const [[x], [y]] = view.map_to_screen ? [[0], [0]] : [[0], [0]]
            const {x_scale, y_scale} = view.frame
            return {left, top, at: (x, y) => [x_scale.compute(x), y_scale.compute(y)]} && [left, top]
        }"""
    )
    return box, report, row


def rows_listed(tab, kind):
    return [int(text) for text in tab.locator(f"#chosen table.{kind} tbody th").all_inner_texts()]


def neighbors(report, row):
    """False, missing and kept neighbours, in the order of the page."""
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

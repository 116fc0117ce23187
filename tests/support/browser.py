"""A real browser for the page tests, which are skipped if no browser is installed."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest

VIEW = "[...Bokeh.index.roots][0]"  # of the plot of a map, in JavaScript
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def launched():
    """Yield a headless Chromium; skip the test if Chromium or Playwright is missing."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no Chromium is installed ({', '.join(BROWSERS)})")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


SECONDS = 300  # an upper bound for a wait in a browser, also on a machine that is busy with much else


def until(tab, condition, seconds=SECONDS):
    """Wait until a JavaScript expression is true; an error in it counts as false.

    `wait_for_function` of Playwright calls `eval`, which the content security policy of the pages forbids.
    """
    met = tab.evaluate(
        f"""async (seconds) => {{
            const end = performance.now() + 1000 * seconds
            const met = () => {{ try {{ return Boolean({condition}) }} catch {{ return false }} }}
            while (!met() && performance.now() < end) await new Promise((done) => setTimeout(done, 10))
            return met()
        }}""",
        seconds,
    )
    assert met, f"not true after {seconds} seconds: {condition}"


def next_frames(tab):
    """Wait until the browser has drawn all changes made so far."""
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def complaint(message):
    """Return whether a console message is an error or a warning; WebGL performance hints are ignored."""
    return message.type in ("error", "warning") and "GL Driver Message" not in message.text


@contextmanager
def watched(browser, **options):
    """Yield an offline tab; assert on exit that there was no error and no network request."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 1000}, **options)
    context.set_default_timeout(1000 * SECONDS)
    tab, trouble = context.new_page(), []
    tab.on("console", lambda message: trouble.append(message.text) if complaint(message) else None)
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("request", lambda request: trouble.append(request.url) if request.url.startswith("http") else None)
    yield tab
    assert not trouble
    context.close()


@contextmanager
def map_pages(browser, folder):
    """Yield a function that opens the page of a map in a watched tab."""
    with watched(browser) as tab:

        def visit(page):
            page.save(folder / "page.html")
            tab.goto((folder / "page.html").as_uri())
            tab.wait_for_selector("body[data-ready=yes]")
            next_frames(tab)
            return tab

        yield visit


def on_screen(tab, points):
    """Return the window coordinates of points of the map."""
    return tab.evaluate(
        f"""(points) => {{
            const {{frame, el}} = {VIEW}, {{left, top}} = el.getBoundingClientRect()
            return points.map(([x, y]) => [left + frame.x_scale.compute(x), top + frame.y_scale.compute(y)])
        }}""",
        np.asarray(points, float).tolist(),
    )

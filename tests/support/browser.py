"""A real browser for the page tests, which are skipped if no browser is installed."""

import shutil
from contextlib import contextmanager

import pytest

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


def complaint(message):
    """Return whether a console message is an error or a warning; WebGL performance hints are ignored."""
    return message.type in ("error", "warning") and "GL Driver Message" not in message.text


@contextmanager
def watched(browser, **options):
    """Yield an offline tab; assert on exit that there was no error and no network request."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 1000}, **options)
    tab, trouble = context.new_page(), []
    tab.on("console", lambda message: trouble.append(message.text) if complaint(message) else None)
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("request", lambda request: trouble.append(request.url) if request.url.startswith("http") else None)
    yield tab
    assert not trouble
    context.close()

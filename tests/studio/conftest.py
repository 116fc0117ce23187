"""Browser tabs that show a studio."""

import pytest
from support.browser import SECONDS, next_frames, until


@pytest.fixture
def visit(browser):
    """Return a function that opens the studio in one browser context; fail on errors of scripts."""
    contexts, problems = [], []

    def visit(address, *, width=1280, height=800, scheme="light", context=None):
        if context is None:
            context = browser.new_context(color_scheme=scheme)
            contexts.append(context)
        tab = context.new_page()
        tab.set_viewport_size({"width": width, "height": height})
        tab.set_default_timeout(1000 * SECONDS)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto(address)
        until(tab, "studio.scenes[0].ready")
        next_frames(tab)
        return tab

    yield visit
    assert not problems
    for context in contexts:
        context.close()

"""Pages are dark or light like the system, until the reader or the author chooses."""

import numpy as np
import pytest
from support.browser import until, watched

import equipoise as eq
from equipoise.views.style import DARK, LIGHT

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
SHOWN = {"light": LIGHT, "dark": DARK}


def css(color):
    return f"rgb({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))})"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return a function from the argument `dark` to the address of a page."""
    pytest.importorskip("bokeh")
    folder = tmp_path_factory.mktemp("pages")
    Y = np.random.default_rng(0).normal(size=(30, 2))

    def save(dark):
        path = folder / f"{dark}.html"
        eq.page(Y, np.repeat(["a", "b", "c"], 10), dark=dark).save(path)
        return path.as_uri()

    return save


@pytest.mark.parametrize(
    ("dark", "system", "shown"),
    [(None, "light", "light"), (None, "dark", "dark"), (False, "dark", "light"), (True, "light", "dark")],
)
def test_page_is_dark_like_the_system_unless_its_author_decides(browser, address, dark, system, shown):
    with watched(browser, color_scheme=system) as tab:
        tab.goto(address(dark))
        until(tab, "document.body.dataset.ready === 'yes'")
        assert tab.evaluate(BACKGROUND) == css(SHOWN[shown].background)
        assert tab.evaluate("document.documentElement.dataset.theme") == shown
        other = "light" if shown == "dark" else "dark"
        assert tab.inner_text("#theme") == f"{other} theme"
        tab.emulate_media(color_scheme="dark" if system == "light" else "light")  # only pages without `dark` follow
        until(tab, f"{BACKGROUND} === {css(SHOWN[other if dark is None else shown].background)!r}")


def test_chosen_theme_overrides_the_system_and_is_remembered(browser, address):
    with watched(browser, color_scheme="dark") as tab:
        tab.goto(address(None))
        until(tab, "document.body.dataset.ready === 'yes'")
        tab.focus("#theme")
        tab.keyboard.press("Enter")
        assert tab.evaluate(BACKGROUND) == css(LIGHT.background)
        tab.reload()
        until(tab, "document.body.dataset.ready === 'yes'")
        assert tab.evaluate(BACKGROUND) == css(LIGHT.background)


def test_dark_must_be_a_boolean_or_none():
    pytest.importorskip("bokeh")
    with pytest.raises(ValueError, match="dark must be True, False or None, got 'yes'"):
        eq.page(np.zeros((3, 2)), dark="yes")

"""The content security policy of pages and reports does not allow a script that slipped into them."""

import base64
import hashlib
import re

import numpy as np
import pytest
from support.browser import next_frames

import equipoise as eq
from equipoise.evaluate.figures import fidelity
from equipoise.views import page as page_module
from equipoise.views.inline import render_page

CODE = "document.title = 'run'"
INJECTED = f"<script>{CODE}</script>"


def make_page():
    Y = np.random.default_rng(0).normal(size=(40, 2))
    return eq.page(Y, np.arange(40) % 2, title="Map").html


def make_report():
    X = np.random.default_rng(0).normal(size=(40, 4))
    return eq.evaluate(X, X[:, :2], k=5).to_html()


# The function that makes a page, the module that fills its template, and the parts that are shown as text.
MAKERS = {
    "page": (make_page, page_module, ("title", "note")),
    "report": (make_report, fidelity, ("subtitle", "readings", "layout", "table", "footer")),
}


@pytest.fixture(params=MAKERS)
def maker(request):
    pytest.importorskip("bokeh")
    return MAKERS[request.param]


def inject(monkeypatch, module, chosen=None):
    """Make a script slip into some parts of the pages of a module, by default all; return the names of these parts."""
    injected = set()

    def render(name, package, scripts, parts):
        injected.update(parts if chosen is None else chosen)
        with_script = {part: text + INJECTED * (part in injected) for part, text in parts.items()}
        return render_page(name, package, scripts, with_script)

    monkeypatch.setattr(module, "render_page", render)
    return injected


def listed_sources(html):
    """Return the sources that the policy of a page allows scripts from."""
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)[1]
    return re.search(r"script-src ([^;]*);", policy)[1].split()


def test_policy_does_not_list_an_injected_script(maker, monkeypatch):
    make, module, shown = maker
    own = listed_sources(make())
    injected = inject(monkeypatch, module)
    html = make()
    digest = base64.b64encode(hashlib.sha256(CODE.encode()).digest()).decode()
    assert injected >= {*shown, "facts", "map"} and html.count(INJECTED) >= len(injected)
    assert listed_sources(html) == own and f"'sha256-{digest}'" not in own
    assert own and all(source.startswith("'sha256-") for source in own)


def test_policy_comes_before_everything_that_it_restricts(maker):
    make, _, _ = maker
    html = make()
    assert re.search(r"<(?!!DOCTYPE|html|head|meta)", html).start() > html.index("Content-Security-Policy")


def test_injected_script_does_not_run_and_the_page_works(maker, monkeypatch, browser, tmp_path):
    make, module, shown = maker
    inject(monkeypatch, module, shown)
    (tmp_path / "page.html").write_text(make(), encoding="utf-8")
    context = browser.new_context(offline=True)
    tab, messages = context.new_page(), []
    tab.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("body[data-ready=yes]")
    next_frames(tab)
    scripts = tab.evaluate("[...document.scripts].map((script) => script.textContent)")
    assert scripts.count(CODE) >= 1 and tab.title() != "run"
    assert messages and all("Content Security Policy" in message and "inline script" in message for message in messages)
    context.close()

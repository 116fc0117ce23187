"""Sets the HTML template and the scripts of the page."""

from __future__ import annotations

import re
import secrets
from importlib.resources import files
from typing import Any

from ...views.inline import read_script

TITLE = "Equipoise studio"
# The nonce of the studio's scripts (see mark_scripts) while a page is rendered. In every response the server replaces
# it by a new nonce of the same length, so that nobody outside the process knows it and no injected text can contain it.
NONCE_MARK = secrets.token_urlsafe(32)
SCRIPT_TAG = re.compile(r"<script\b(?![^>]*application/json)")


def set_template(document: Any, roots: tuple[Any, ...], message: Any) -> None:
    """Set the title, template, scripts and root models of a document; the scripts show errors in `message`."""
    from bokeh.models import CustomJS

    own = files(__package__)
    document.title = TITLE
    document.template = own.joinpath("studio.html").read_text(encoding="utf-8")
    document.template_variables["scripts"] = "\n".join(
        [
            *(read_script(name) for name in ("elements", "color_scheme", "dots", "plot_keys")),
            *(
                own.joinpath(f"{name}.js").read_text(encoding="utf-8")
                for name in ("theme", "keys", "table_form", "studio")
            ),
        ]
    )
    document.template_variables["nonce"] = NONCE_MARK
    document.template_variables["mark_scripts"] = mark_scripts
    for root in roots:
        document.add_root(root)
    document.js_on_event("document_ready", CustomJS(args={"message": message}, code="start(message.document, message)"))


def mark_scripts(html: str, count: int = 0) -> str:
    """Return HTML in which the first `count` scripts, by default all, have NONCE_MARK as their nonce.

    A nonce is a random value without which the browser does not run a script. The server replaces NONCE_MARK by a new
    one in every response. Elements that contain JSON are not scripts.
    """
    return SCRIPT_TAG.sub(f'<script nonce="{NONCE_MARK}"', html, count=count)

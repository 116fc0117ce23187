"""The HTML template and the scripts of the page."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from ...views.inline import read_script

TITLE = "Equipoise studio"


def set_template(document: Any, roots: tuple[Any, ...], message: Any) -> None:
    """Set the title, template, scripts and root models of a document; the scripts show errors in `message`."""
    from bokeh.models import CustomJS

    own = files(__package__)
    document.title = TITLE
    document.template = own.joinpath("studio.html").read_text(encoding="utf-8")
    document.template_variables["scripts"] = "\n".join(
        [read_script("elements"), read_script("dots"), own.joinpath("studio.js").read_text(encoding="utf-8")]
    )
    for root in roots:
        document.add_root(root)
    document.js_on_event("document_ready", CustomJS(args={"message": message}, code="start(message.document, message)"))

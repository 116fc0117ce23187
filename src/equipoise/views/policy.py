"""Write content security policies, which allow a page to run only its own scripts and to load nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape

INLINE_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL | re.IGNORECASE)
META = '<meta http-equiv="Content-Security-Policy" content="{}">'


def policy_element(html: str) -> str:
    """Return the <meta> element with a policy that lets a self-contained page run its scripts but load no files.

    Parameters
    ----------
    html : str
        The page before its data are filled in. Scripts in the data filled in later cannot run.
    """
    directives = (
        "default-src 'none'",
        " ".join(["script-src", *_script_hashes(html)]),
        "style-src 'unsafe-inline'",  # Bokeh sets styles of elements
        "img-src data: blob:",
        "font-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return META.format(escape("; ".join(directives), quote=False).replace('"', "&quot;"))


def _script_hashes(html: str) -> list[str]:
    """Return the hashes of the inline scripts of a page, written as in a script-src directive."""
    found = INLINE_SCRIPT.finditer(html)
    texts = [match["text"] for match in found if "application/json" not in match["attributes"]]
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return list(dict.fromkeys(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests))

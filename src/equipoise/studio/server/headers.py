"""Security headers of every response of the studio."""

from __future__ import annotations

import secrets

from tornado.httputil import HTTPHeaders
from tornado.web import OutputTransform

from ..page.template import NONCE_MARK

DIRECTIVES = (
    "default-src 'none'",
    "style-src 'self' 'unsafe-inline'",  # Bokeh sets styles of elements
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address may contain the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeaders(OutputTransform):
    """Adds a content security policy and other security headers to a response."""

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        scripts = "script-src 'none'"
        if headers.get("Content-Type", "").startswith("text/html"):
            nonce = secrets.token_urlsafe(32)
            chunk = chunk.replace(NONCE_MARK.encode(), nonce.encode())  # of the same length, see Content-Length
            # Only elements with the nonce run, not injected scripts or event handlers. Bokeh compiles the callbacks of
            # widgets with `new Function`, which needs 'unsafe-eval'.
            scripts = f"script-src 'nonce-{nonce}' 'unsafe-eval'"
        headers["Content-Security-Policy"] = "; ".join([*DIRECTIVES, scripts])
        for name, value in HEADERS.items():
            headers[name] = value
        return status_code, headers, chunk

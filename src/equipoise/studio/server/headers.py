"""Security headers of every response of the studio."""

from __future__ import annotations

from tornado.httputil import HTTPHeaders
from tornado.web import OutputTransform

from ...views.policy import script_hashes

# Bokeh compiles the callbacks of widgets with `new Function`, which needs 'unsafe-eval'; inline scripts run only if
# their hash is listed, so injected text does not run as a script or an event handler.
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
        is_page = headers.get("Content-Type", "").startswith("text/html")
        hashes = script_hashes(chunk.decode("utf-8", errors="replace")) if is_page and finishing else []
        scripts = " ".join(["script-src 'self' 'unsafe-eval'", *hashes])
        headers["Content-Security-Policy"] = "; ".join([*DIRECTIVES, scripts])
        for name, value in HEADERS.items():
            headers[name] = value
        return status_code, headers, chunk

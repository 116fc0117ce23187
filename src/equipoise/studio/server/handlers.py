"""Handles the requests of an open page for uploads and exports."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from tornado.web import HTTPError, RequestHandler, stream_request_body

from ..data_sources import DataSources, format_size, public_message
from ..limits import Limits
from .guard import Guard


class _GuardedHandler(RequestHandler):
    """A handler for requests from an open page, identified by the query argument `session`."""

    def initialize(self, guard: Guard, sessions: dict[str, Any], tables: DataSources, limits: Limits) -> None:
        self.guard, self.sessions, self.tables, self.limits = guard, sessions, tables, limits

    def prepare(self) -> None:
        self.guard.check(self)
        self.session: Any = self.sessions.get(self.get_query_argument("session", ""))
        if self.session is None:
            raise HTTPError(403, reason="this page is no longer open in the studio; reload it")

    def send_error_message(self, status: int, message: str) -> None:
        """Respond with an error status and a message as JSON."""
        self.set_status(status)
        self.finish({"message": message})


@stream_request_body
class Upload(_GuardedHandler):
    """Stores a table sent by POST, and responds with the name of its data set (see `DataSources`)."""

    running: ClassVar[set[Upload]] = set()  # the uploads that are being received or checked

    def prepare(self) -> None:
        super().prepare()
        self.parts: list[bytes] = []
        limit = self.limits.upload
        if sum(other.tables is self.tables for other in self.running) >= self.limits.uploading:
            self.send_error_message(503, "other uploads are running; try again in a moment")
        elif int(self.request.headers.get("Content-Length", "0")) > limit:
            self.send_error_message(
                413, f"the file exceeds the limit of {format_size(limit)}; use fewer rows or columns"
            )
        else:
            self.running.add(self)
            self.request.connection.set_max_body_size(limit)  # type: ignore[union-attr]  # missing in its base class

    def on_finish(self) -> None:
        self._forget()

    def on_connection_close(self) -> None:
        super().on_connection_close()
        self._forget()

    def _forget(self) -> None:
        self.running.discard(self)
        self.parts = []

    def data_received(self, chunk: bytes) -> None:
        self.parts.append(chunk)

    async def post(self) -> None:
        name, content = self.get_query_argument("name", ""), b"".join(self.parts)
        self.parts = []
        try:
            stored = await asyncio.get_running_loop().run_in_executor(None, self.tables.store, name, content)
        except (ValueError, OSError, MemoryError) as error:
            self.send_error_message(400, public_message(error))
            return
        self.finish({"data": stored})


class Export(_GuardedHandler):
    """Responds with the map of a page as a csv, png or html file."""

    async def get(self, kind: str) -> None:
        try:
            if kind == "html":  # Bokeh models must stay on the thread of the event loop
                content, name, mime = self.session.export(kind)
            else:
                content, name, mime = await asyncio.get_running_loop().run_in_executor(None, self.session.export, kind)
        except (ValueError, OSError) as error:
            self.send_error_message(400, public_message(error))
            return
        self.set_header("Content-Type", mime)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(content)

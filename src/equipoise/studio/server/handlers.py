"""What the studio answers beside Bokeh's page and websocket: uploads and exports, each for one open page."""

from __future__ import annotations

import asyncio
from typing import Any

from tornado.web import HTTPError, RequestHandler, stream_request_body

from ..data_sources import Tables, in_public, in_words
from .guard import Guard


class _Guarded(RequestHandler):
    """A request that names a session of an open page and comes from the studio's own address."""

    guard: Guard
    sessions: dict[str, Any]
    tables: Tables

    def initialize(self, guard: Guard, sessions: dict[str, Any], tables: Tables) -> None:
        self.guard, self.sessions, self.tables = guard, sessions, tables

    def prepare(self) -> None:
        self.guard.check(self)
        self.session: Any = self.sessions.get(self.get_query_argument("session", ""))
        if self.session is None:
            raise HTTPError(403, reason="no page of this studio asks for this")

    def refuse(self, status: int, message: str) -> None:
        self.set_status(status)
        self.finish({"message": message})


@stream_request_body
class Upload(_Guarded):
    """Takes a table in the body of a POST, up to the limit, and gives its name among the data sets."""

    def prepare(self) -> None:
        super().prepare()
        self.parts: list[bytes] = []
        limit = self.tables.limit
        if int(self.request.headers.get("Content-Length", "0")) > limit:
            self.refuse(413, f"the file is larger than {in_words(limit)}, the limit of this studio")
        else:
            self.request.connection.set_max_body_size(limit)  # type: ignore[union-attr]  # it has no base class

    def data_received(self, chunk: bytes) -> None:
        self.parts.append(chunk)

    async def post(self) -> None:
        name, content = self.get_query_argument("name", ""), b"".join(self.parts)
        try:
            kept = await asyncio.get_running_loop().run_in_executor(None, self.tables.keep, name, content)
        except (ValueError, OSError, MemoryError) as error:
            self.refuse(400, in_public(error))
            return
        self.finish({"data": kept})


class Export(_Guarded):
    """Gives the map of a page as a file: csv, png or html."""

    async def get(self, kind: str) -> None:
        try:
            if kind == "html":  # Bokeh's models are for one thread, and this is theirs
                content, name, mime = self.session.export(kind)
            else:
                content, name, mime = await asyncio.get_running_loop().run_in_executor(None, self.session.export, kind)
        except (ValueError, OSError) as error:
            self.refuse(400, in_public(error))
            return
        self.set_header("Content-Type", mime)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.set_header("X-Content-Type-Options", "nosniff")
        self.finish(content)

"""An HTTP server that limits its connections and drops clients that do not accept the data sent to them."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.iostream import IOStream

from ..limits import Limits

LOG = logging.getLogger(__name__)
AT_ONCE = 128  # connections accepted before other work continues; the usual length of the system's queue
RETRY = 1.0  # seconds without accepting after the system had no file descriptor left
QUIET = 60.0  # minimum seconds between two warnings
BUFFER = 4 * 2**20  # maximum bytes buffered per connection; uploads are read in smaller parts
HEADER = 64 * 2**10  # maximum bytes of the header of a request
RESERVED = 0.5  # maximum fraction of the file descriptors of the process that connections use
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 5\r\n"
    b"Connection: close\r\n\r\n"
    b"The studio has reached its maximum number of open connections; close other pages and try again.\n"
)


class LimitedServer(HTTPServer):
    """An HTTP server that limits the number of its open connections.

    The maximum is `limits.connections`, or half of the file descriptors of the process if that is fewer. Further
    connections are answered with status 503 and closed. If the system has no file descriptor left, the server stops
    accepting connections for a second. It logs at most one warning a minute.
    """

    limits: Limits

    def initialize(self, request_callback: Any, limits: Limits) -> None:  # type: ignore[override]  # fixed options
        super().initialize(
            request_callback,
            max_header_size=HEADER,
            idle_connection_timeout=limits.idle,
            body_timeout=limits.body,
            max_body_size=BUFFER,
            max_buffer_size=BUFFER,
        )
        self.limits = limits
        self.maximum = min(limits.connections, _descriptors())
        self.streams: set[Stream] = set()
        self._warned_at = -QUIET
        self._sweep = PeriodicCallback(self.drop_stalled, 1000 * limits.stall / 4)

    def add_sockets(self, sockets: Iterable[socket.socket]) -> None:
        """Accept connections on these sockets."""
        for listening in sockets:
            self._sockets[listening.fileno()] = listening
            self._handlers[listening.fileno()] = self._listen(listening)
        self._sweep.start()

    def stop(self) -> None:
        """Stop accepting connections."""
        self._sweep.stop()
        super().stop()

    def _listen(self, listening: socket.socket) -> Callable[[], None]:
        """Start to accept connections on a socket, and return a function that stops accepting them."""
        loop = IOLoop.current()
        state = {"ended": False, "paused": False}

        def accept(fd: Any, events: int) -> None:
            try:
                self._accept(listening)
            except OSError as error:  # typically EMFILE; the socket stays readable, so retry later
                self._warn("cannot accept a connection: %s; trying again every second", error.strerror or error)
                loop.remove_handler(listening)
                state["paused"] = True
                loop.call_later(RETRY, resume)

        def resume() -> None:
            if state["paused"] and not state["ended"]:
                state["paused"] = False
                loop.add_handler(listening, accept, IOLoop.READ)

        def end() -> None:
            state["ended"] = True
            if not state["paused"]:
                loop.remove_handler(listening)

        loop.add_handler(listening, accept, IOLoop.READ)
        return end

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, address = listening.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            if len(self.streams) >= self.maximum:
                self._warn("there are %d open connections, the maximum; new connections are refused", len(self.streams))
                self._refuse(connection)
                continue
            stream = Stream(connection, self.streams, self.max_buffer_size, self.read_chunk_size)
            self.handle_stream(stream, address)

    @staticmethod
    def _refuse(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.setblocking(False)
            connection.send(FULL)

    def drop_stalled(self) -> None:
        """Close the connections whose clients have accepted none of the waiting data for `limits.stall` seconds."""
        before = time.monotonic() - self.limits.stall
        for stream in list(self.streams):
            if stream.writing() and stream.taken_at < before:
                stream.close()

    def _warn(self, text: str, *values: Any) -> None:
        if time.monotonic() - self._warned_at >= QUIET:
            self._warned_at = time.monotonic()
            LOG.warning(text, *values)


class Stream(IOStream):
    """A connection that is listed in `streams` while open; `taken_at` is when its client last accepted data."""

    def __init__(self, connection: socket.socket, streams: set[Stream], buffer: int | None, chunk: int | None):
        super().__init__(connection, max_buffer_size=buffer, read_chunk_size=chunk)
        self._streams = streams
        self.taken_at = time.monotonic()
        streams.add(self)

    def write_to_fd(self, data: memoryview) -> int:
        """Send data and return the number of bytes that the client accepted."""
        count = super().write_to_fd(data)
        if count:
            self.taken_at = time.monotonic()
        return count

    def close_fd(self) -> None:
        """Close the socket and remove the connection from `streams`."""
        self._streams.discard(self)
        super().close_fd()


def _descriptors() -> int:
    """Return the maximum number of file descriptors for connections."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return 2**31
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else max(1, int(RESERVED * soft))

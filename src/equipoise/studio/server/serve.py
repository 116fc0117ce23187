"""The life of a studio: its socket, its folder, its end."""

from __future__ import annotations

import asyncio
import secrets
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ...data import DATASETS, Dataset, check_table, load
from ...methods.estimator import threads
from ..data_sources import Tables, read_table

LIMIT = 200 * 2**20  # bytes of an upload: 70,000 rows of 350 numbers in .npy
MESSAGE = 2**20  # bytes of a websocket message to the server: the page sends sliders and clicks


class Studio:
    """A server on its own event loop; `run()` serves until `stop()`, which any thread may call.

    Parameters are those of `serve`.
    """

    def __init__(
        self,
        data: Any = None,
        *,
        port: int = 0,
        address: str = "127.0.0.1",
        hosts: tuple[str, ...] = (),
        folder: str | Path | None = None,
        limit: int = LIMIT,
        n_jobs: int | None = None,
    ):
        try:
            from bokeh.application import Application
            from bokeh.application.handlers.function import FunctionHandler
            from bokeh.server.server import BaseServer
            from bokeh.server.tornado import BokehTornado
        except ImportError as error:
            raise ImportError('the studio needs Bokeh: pip install "equipoise[pages]"') from error
        from tornado.httpserver import HTTPServer
        from tornado.ioloop import IOLoop
        from tornado.netutil import bind_sockets

        from ..page.app import Page
        from .guard import Guard, provider
        from .handlers import Export, Upload

        given = _dataset(data)
        n_jobs = max(1, threads(None) - 1) if n_jobs is None else threads(n_jobs)
        self._own = tempfile.TemporaryDirectory(prefix="equipoise-studio-") if folder is None else None
        place = Path(folder if folder is not None else self._own.name)  # type: ignore[union-attr]  # one of them is there
        if not place.is_dir():
            raise ValueError(f"the folder {str(place)!r} does not exist")
        tables = Tables(place, limit, given)
        sockets = bind_sockets(port, address)
        self.port = sockets[0].getsockname()[1]
        self.guard = Guard(address, self.port, hosts)
        self.pages: dict[str, Page] = {}
        self._loop = IOLoop(make_current=False)
        shared = {"guard": self.guard, "sessions": self.pages, "tables": tables}

        def open_page(document: Any) -> None:
            Page(document, tables, self.pages, n_jobs)

        application = BokehTornado(
            {"/": Application(FunctionHandler(open_page))},
            extra_websocket_origins=sorted(self.guard.hosts),
            extra_patterns=[(r"/upload", Upload, shared), (r"/export/(csv|png|html)", Export, shared)],
            auth_provider=provider(self.guard),
            secret_key=secrets.token_bytes(32),
            sign_sessions=True,
            websocket_max_message_size_bytes=MESSAGE,
            keep_alive_milliseconds=10_000,
        )
        asyncio.set_event_loop(self._loop.asyncio_loop)
        http = HTTPServer(application)
        http.add_sockets(sockets)
        self._server = BaseServer(self._loop, application, http)
        host = "127.0.0.1" if address in ("", "0.0.0.0", "::") else address
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
        if self.guard.token is not None:
            self.url += f"?token={self.guard.token}"

    def run(self) -> None:
        """Serve until `stop` or Ctrl-C."""
        asyncio.set_event_loop(self._loop.asyncio_loop)
        self._server.start()
        try:
            self._loop.start()
        finally:
            self._server.stop(wait=False)
            for page in list(self.pages.values()):
                page.close()
            self._loop.run_sync(self._server._http.close_all_connections)
            self._loop.close(all_fds=True)
            if self._own is not None:
                self._own.cleanup()

    def stop(self) -> None:
        """Have `run` return."""
        self._loop.add_callback(self._loop.stop)


def serve(
    data: Any = None,
    *,
    port: int = 0,
    address: str = "127.0.0.1",
    show: bool = True,
    hosts: tuple[str, ...] = (),
    folder: str | Path | None = None,
    limit: int = LIMIT,
    n_jobs: int | None = None,
) -> None:
    """Open the studio and serve it until Ctrl-C, or until the system ends it by SIGTERM.

    Parameters
    ----------
    data : what it opens with: a name that `equipoise data` lists, a .csv or .npy file, a table (n, D) or a `Dataset`
    port : 0 takes a free one
    address : the address to listen at; beyond this machine a token is needed, which the printed address holds
    show : whether to open a browser
    hosts : further names under which the studio may be visited, for an address beyond this machine
    folder : where tables are opened and uploads are kept; by default one that is deleted in the end
    limit : bytes of an upload
    n_jobs : threads; by default all cores but one, which is left to the browser
    """
    studio = Studio(data, port=port, address=address, hosts=hosts, folder=folder, limit=limit, n_jobs=n_jobs)
    print(f"Equipoise studio at {studio.url} (Ctrl-C ends it)", flush=True)
    if show:
        webbrowser.open(studio.url)
    with _ended_by_system(studio), suppress(KeyboardInterrupt):
        studio.run()
    print("studio closed")


@contextmanager
def _ended_by_system(studio: Studio) -> Iterator[None]:
    """Have SIGTERM end a studio as Ctrl-C does, its folder with it; signals come to the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: studio.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)  # None: not set from Python, and cannot be put back


def _dataset(data: Any) -> Dataset | None:
    if data is None:
        return None
    if isinstance(data, Dataset):
        if sparse.issparse(data.X):
            raise ValueError(f"{data.name} is sparse, and the studio shows dense tables; add --pca 50, or X.toarray()")
        return replace(data, X=check_table(data.X))
    if isinstance(data, Path) or (isinstance(data, str) and data not in DATASETS):
        if not Path(data).is_file():
            raise ValueError(f"{str(data)!r} is neither a file nor a name that `equipoise data` lists, such as digits")
        return read_table(Path(data))
    if isinstance(data, str):
        return load(data)
    return Dataset("your table", np.asarray(check_table(data)), None, ())

"""Start and stop the web server of the studio."""

from __future__ import annotations

import asyncio
import secrets
import signal
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
from ..data_sources import DataSources, GivenData, read_table
from ..limits import Limits
from .temporary_folder import TemporaryFolder

MAX_MESSAGE = 2**20  # bytes of a websocket message to the server; the page sends only sliders and clicks


class Studio:
    """The studio as a web server with its own event loop.

    `run()` serves until any thread calls `stop()`. The parameters are those of `serve`, without `show`.

    Attributes
    ----------
    port : int
        Port that the studio listens on.
    url : str
        Address of the page, with the token if one is needed.
    """

    def __init__(
        self,
        data: Any = None,
        *,
        port: int = 0,
        address: str = "127.0.0.1",
        hosts: tuple[str, ...] = (),
        folder: str | Path | None = None,
        limit: int | Limits | None = None,
        n_jobs: int | None = None,
    ):
        try:
            from bokeh.server.server import BaseServer
        except ImportError as error:
            raise ImportError('the studio needs Bokeh: pip install "equipoise[pages]"') from error
        from tornado.ioloop import IOLoop
        from tornado.netutil import bind_sockets

        from ..page.app import Page
        from .connections import LimitedServer
        from .guard import Guard

        given = _read_dataset(data)
        self._n_jobs = max(1, threads(None) - 1) if n_jobs is None else threads(n_jobs)
        self._temporary = TemporaryFolder() if folder is None else None
        path = Path(self._temporary.path if self._temporary is not None else folder)  # type: ignore[arg-type]  # not None
        if not path.is_dir():
            raise ValueError(f"folder={str(path)!r} is not an existing folder; create it or choose another")
        self.limits = _read_limits(limit)
        self._sources = DataSources(path, self.limits, given)
        sockets = bind_sockets(port, address)
        self.port = sockets[0].getsockname()[1]
        self.guard = Guard(address, self.port, hosts)
        self.pages: dict[str, Page] = {}
        self._loop = IOLoop(make_current=False)
        application = self._make_application()
        asyncio.set_event_loop(self._loop.asyncio_loop)
        http = LimitedServer(application, self.limits)
        http.add_sockets(sockets)
        self._server = BaseServer(self._loop, application, http)
        host = "127.0.0.1" if address in ("", "0.0.0.0", "::") else address
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
        if self.guard.token is not None:
            self.url += f"?token={self.guard.token}"

    def _make_application(self) -> Any:
        """Return the Tornado application: the page, uploads and exports."""
        from bokeh.application import Application
        from bokeh.application.handlers.function import FunctionHandler
        from bokeh.server.tornado import BokehTornado

        from ..page.app import Page
        from .guard import make_auth_provider
        from .handlers import Export, Upload
        from .headers import SecurityHeaders

        shared = {"guard": self.guard, "sessions": self.pages, "tables": self._sources, "limits": self.limits}

        def open_page(document: Any) -> None:
            Page(document, self._sources, self.pages, self.limits, self._n_jobs)

        return BokehTornado(
            {"/": Application(FunctionHandler(open_page))},
            extra_websocket_origins=sorted(self.guard.hosts),
            extra_patterns=[(r"/upload", Upload, shared), (r"/export/(csv|png|html)", Export, shared)],
            auth_provider=make_auth_provider(self.guard, self.pages, self.limits.pages),
            secret_key=secrets.token_bytes(32),
            sign_sessions=True,
            websocket_max_message_size_bytes=MAX_MESSAGE,
            keep_alive_milliseconds=10_000,
            check_unused_sessions_milliseconds=5_000,
            transforms=[SecurityHeaders],
        )

    def run(self) -> None:
        """Serve until `stop` is called or Ctrl-C is pressed."""
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
            if self._temporary is not None:
                self._temporary.delete()

    def stop(self) -> None:
        """Make `run` return."""
        self._loop.add_callback(self._loop.stop)


def serve(
    data: Any = None,
    *,
    port: int = 0,
    address: str = "127.0.0.1",
    show: bool = True,
    hosts: tuple[str, ...] = (),
    folder: str | Path | None = None,
    limit: int | Limits | None = None,
    n_jobs: int | None = None,
) -> None:
    """Start the studio and serve it until Ctrl-C or SIGTERM.

    Parameters
    ----------
    data : str, path, array-like of shape (n, D) or Dataset, optional
        The data set to open: a name listed by `equipoise data`, a file that `data.read` accepts, or a table.
    port : int, default=0
        Port; 0 chooses a free one.
    address : str, default="127.0.0.1"
        Address to listen on. If other machines can reach it, requests need a token, which is part of the printed URL.
    show : bool, default=True
        Open a browser.
    hosts : tuple of str, default=()
        Further host names by which the studio can be reached.
    folder : str or path, optional
        Folder for data files and uploads; by default a temporary one, deleted at the end.
    limit : int or Limits, optional
        Maximum size of an upload in bytes (default 200 MB), or an `equipoise.studio.Limits` that sets all limits.
    n_jobs : int, optional
        Number of threads. The default leaves a core to the browser: it is the number of cores, or OMP_NUM_THREADS if
        that is smaller, minus one, but at least one.
    """
    studio = Studio(data, port=port, address=address, hosts=hosts, folder=folder, limit=limit, n_jobs=n_jobs)
    print(f"Equipoise studio at {studio.url} (press Ctrl-C to stop)", flush=True)
    if show:
        webbrowser.open(studio.url)
    with stop_on_sigterm(studio), suppress(KeyboardInterrupt):
        studio.run()
    print("studio closed")


@contextmanager
def stop_on_sigterm(studio: Studio) -> Iterator[None]:
    """Make SIGTERM stop the studio, so that its temporary folder is deleted; outside the main thread, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: studio.stop())
    try:
        yield
    finally:
        signal.signal(
            signal.SIGTERM, before or signal.SIG_DFL
        )  # None: the old handler was not set by Python and cannot be restored


def _read_limits(limit: int | Limits | None) -> Limits:
    if limit is None:
        return Limits()
    return limit if isinstance(limit, Limits) else Limits(upload=limit)


def _read_dataset(data: Any) -> GivenData | None:
    """Return the data passed to the studio, and the Python code that reads them; None if there are none."""
    if data is None:
        return None
    if isinstance(data, GivenData):
        return replace(data, dataset=_dense(data.dataset))
    if isinstance(data, Dataset):
        return GivenData(_dense(data))
    if isinstance(data, Path) or (isinstance(data, str) and data not in DATASETS):
        if not Path(data).is_file():
            raise ValueError(f"{str(data)!r} is neither a file nor a bundled data set; run `equipoise data` for a list")
        return GivenData(read_table(Path(data)), f"X = data.read({str(data)!r}).X")
    if isinstance(data, str):
        return GivenData(load(data), f"X = data.load({data!r}).X")
    return GivenData(Dataset("your table", np.asarray(check_table(data)), None, ()))


def _dense(dataset: Dataset) -> Dataset:
    if sparse.issparse(dataset.X):
        raise ValueError(
            f"{dataset.name} is sparse, but the studio needs dense data; add --pca 50, or pass X.toarray() in Python"
        )
    return replace(dataset, X=check_table(dataset.X))

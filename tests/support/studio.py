"""A running studio, and requests and websockets to it."""

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

SECONDS = 300  # an upper bound for a wait, also on a machine that is busy with much else
CHAIN = 4  # commands in a row: opening a data set submits a replay, and the replay a refresh

MODEL = "Bokeh.documents[0].get_model_by_name('{name}')"  # in a page of the studio


def text(name):
    """Return the JavaScript of the text of a part of the page."""
    return MODEL.format(name=name) + ".text"


@contextmanager
def running(*args, **options):
    """Yield a studio that serves in a thread."""
    from equipoise.studio.server.serve import Studio

    studio = Studio(*args, n_jobs=1, **options)
    thread = threading.Thread(target=studio.run)
    thread.start()
    try:
        yield studio
    finally:
        studio.stop()
        thread.join(SECONDS)  # Bokeh collects garbage once per dropped session, and there may be many
        assert not thread.is_alive()


async def drain():
    """Let the event loop run the callbacks that close sockets."""
    for _ in range(10):
        await asyncio.sleep(0)


def fetch(url, **options):
    """Return status, headers and body of a response, also of an error."""
    from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

    async def go():
        client = AsyncHTTPClient(force_instance=True)
        try:
            answer = await client.fetch(HTTPRequest(url, connect_timeout=SECONDS, request_timeout=SECONDS, **options))
        except HTTPClientError as error:
            answer = error.response
            if answer is None:
                raise
        finally:
            client.close()
            await drain()
        return answer.code, answer.headers, answer.body

    return asyncio.run(go())


def open_session(studio):
    """Open a page and return the token and the id of its session."""
    from bokeh.util.token import get_session_id

    status, _, body = fetch(studio.url)
    assert status == 200
    text = body.decode()
    token = json.loads(text[text.index('"token":') + 8 :].split(",")[0].split("}")[0])
    return token, get_session_id(token)


def connect(studio, token, origin=None):
    """Return a coroutine that opens a websocket."""
    from tornado.httpclient import HTTPRequest
    from tornado.websocket import websocket_connect

    headers = {"Sec-WebSocket-Protocol": f"bokeh, {token}"}
    url = f"ws://127.0.0.1:{studio.port}/ws"
    headers |= {"Origin": origin} if origin else {}
    request = HTTPRequest(url, headers=headers, connect_timeout=SECONDS, request_timeout=SECONDS)
    return websocket_connect(request, subprotocols=["bokeh", token])


async def close_websocket(connection):
    """Close a websocket and drain its messages, so that the socket is closed as well."""
    connection.close()
    while connection.close_code is None and await asyncio.wait_for(connection.read_message(), SECONDS) is not None:
        pass
    await drain()


def first_message(studio, token, origin=None):
    async def go():
        connection = await connect(studio, token, origin)
        message = await asyncio.wait_for(connection.read_message(), SECONDS)
        if message is not None:
            await close_websocket(connection)
        connection.close()
        await drain()
        return message

    return asyncio.run(go())


@contextmanager
def opened_page(folder, limits=None, data="circle", session="one"):
    """Yield a page of a studio without a server; it draws only when `finish` is called."""
    from bokeh.document import Document

    from equipoise import data as datasets
    from equipoise.studio.data_sources import DataSources, GivenData
    from equipoise.studio.limits import Limits
    from equipoise.studio.page.app import Page

    limits = limits or Limits()
    document = Document()
    context = SimpleNamespace(id=session, request=SimpleNamespace(headers={}, arguments={}))
    document._session_context = lambda: context  # Bokeh calls a weak reference
    given = GivenData(datasets.load(data) if isinstance(data, str) else data)
    page = Page(document, DataSources(folder, limits, given), {}, limits, 1)
    try:
        yield page
    finally:
        page.close()
        page._player.worker.join(SECONDS)
        document.clear()


def inject_markup(monkeypatch, markup):
    """Make markup slip into the pages of studios, at their top and before Bokeh's script."""
    from equipoise.studio.page import app

    original = app.set_template

    def set_template(document, roots, message):
        original(document, roots, message)
        for place in ('<div id="studio">', "{{ mark_scripts(plot_script, 1) }}"):
            assert place in document.template
            document.template = document.template.replace(place, markup + place)

    monkeypatch.setattr(app, "set_template", set_template)


def wait_until(condition):
    """Wait until a function returns something true."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def finish(page):
    """Wait until the commands of a page without a server, and those that follow from them, have ended."""
    for _ in range(CHAIN):
        ended = threading.Event()
        page._player.submit("", lambda: None, lambda _, ended=ended: ended.set())
        while not ended.is_set():
            page._tick()
            ended.wait(0.002)


def finish_commands(page):
    """Wait until the commands of a page of a running studio, and those that follow from them, have ended."""
    for _ in range(CHAIN):
        ended = threading.Event()
        page._player.submit("", lambda: None, lambda _, ended=ended: ended.set())
        assert ended.wait(SECONDS)

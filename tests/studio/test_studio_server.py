"""The studio as a server: who may talk to it, what it refuses, and that nothing said to it stops it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("bokeh")
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from equipoise.studio.server.guard import is_loopback
from equipoise.studio.server.serve import Studio, serve, stop_on_sigterm

LIMIT = 4096


@contextmanager
def running(*args, **options):
    studio = Studio(*args, n_jobs=1, **options)
    thread = threading.Thread(target=studio.run)
    thread.start()
    try:
        yield studio
    finally:
        studio.stop()
        thread.join(120)  # Bokeh collects garbage once for every session that it drops, and there are many
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def studio():
    with running("circle", limit=LIMIT) as studio:
        yield studio


def fetch(url, **options):
    """Return status, headers and body, whatever the status is."""

    async def go():
        client = AsyncHTTPClient(force_instance=True)
        try:
            answer = await client.fetch(HTTPRequest(url, **options))
        except HTTPClientError as error:
            answer = error.response
            if answer is None:
                raise
        finally:
            client.close()
            await asyncio.sleep(0.01)  # for its sockets to be closed
        return answer.code, answer.headers, answer.body

    return asyncio.run(go())


def opened(studio):
    """Open a page and return the token of its session."""
    from bokeh.util.token import get_session_id

    status, _, body = fetch(studio.url)
    assert status == 200
    text = body.decode()
    token = json.loads(text[text.index('"token":') + 8 :].split(",")[0].split("}")[0])
    return token, get_session_id(token)


def connected(studio, token, origin=None):
    """Return an open websocket, as a coroutine."""
    headers = {"Sec-WebSocket-Protocol": f"bokeh, {token}"}
    url = f"ws://127.0.0.1:{studio.port}/ws"
    return websocket_connect(
        HTTPRequest(url, headers=headers | ({"Origin": origin} if origin else {})), subprotocols=["bokeh", token]
    )


async def finish(connection):
    """Close a websocket and read what is left, so that its socket is closed with it."""
    connection.close()
    while connection.close_code is None and await asyncio.wait_for(connection.read_message(), 20) is not None:
        pass
    await asyncio.sleep(0.01)


def first_message(studio, token, origin=None):
    async def go():
        connection = await connected(studio, token, origin)
        message = await asyncio.wait_for(connection.read_message(), 20)
        if message is not None:
            await finish(connection)
        connection.close()
        await asyncio.sleep(0.05)
        return message

    return asyncio.run(go())


def test_a_page_is_served_and_its_websocket_opens(studio):
    token, _ = opened(studio)
    assert first_message(studio, token) is not None
    assert first_message(studio, token, f"http://127.0.0.1:{studio.port}") is not None
    assert studio.guard.token is None and "token" not in studio.url


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:1", "http://127.0.0.1.evil.example", "null"]
)
def test_foreign_origins_are_refused(studio, origin):
    token, session = opened(studio)
    with pytest.raises(HTTPClientError, match="403"):
        first_message(studio, token, origin)
    upload = f"{studio.url}upload?session={session}&name=a.csv"
    assert fetch(upload, method="POST", body="1,2\n3,4\n", headers={"Origin": origin})[0] == 403


def test_another_host_name_is_refused(studio):
    assert fetch(studio.url, headers={"Host": f"evil.example:{studio.port}"})[0] == 403
    assert fetch(studio.url, headers={"Host": f"localhost:{studio.port}"})[0] == 200


def test_a_session_that_is_made_up_is_refused(studio):
    token, _ = opened(studio)
    assert fetch(f"{studio.url}upload?session=nobody&name=a.csv", method="POST", body="1,2\n3,4\n")[0] == 403
    assert fetch(f"{studio.url}export/csv?session=")[0] == 403
    for made_up in (token[:-4] + "AAAA", "nonsense"):
        closed = False
        try:
            closed = first_message(studio, made_up) is None
        except HTTPClientError:
            closed = True
        assert closed


def test_uploads_up_to_the_limit(studio):
    _, session = opened(studio)
    upload = f"{studio.url}upload?session={session}&name="
    status, _, body = fetch(upload + "table.csv", method="POST", body="1,2\n3,4\n")
    assert status == 200 and json.loads(body)["data"].startswith("file:table-")
    status, _, body = fetch(upload + "large.csv", method="POST", body="1,2\n" * LIMIT)
    assert status == 413 and json.loads(body)["message"] == "the file exceeds the limit of 4 kB"
    status, _, body = fetch(upload + "..%2F..%2Fx.py", method="POST", body="1,2\n3,4\n")
    assert status == 400 and "unknown format '.py'; upload a .csv or .npy file" in json.loads(body)["message"]
    status, _, body = fetch(upload + "ragged.csv", method="POST", body="1,2\n3\n")
    message = json.loads(body)["message"]
    assert status == 400
    assert re.fullmatch(r"ragged-\w+\.csv, line 2: expected 2 cells as in the first row, got 1.*", message)


def test_an_upload_without_a_length_ends_at_the_limit(studio):
    _, session = opened(studio)

    async def endless(write):
        for _ in range(64):
            await write(b"1,2\n" * 1024)

    url = f"{studio.url}upload?session={session}&name=a.csv"
    try:
        status = fetch(url, method="POST", body_producer=endless)[0]
    except (HTTPClientError, OSError):
        status = 400  # cut off
    assert status in (400, 413)
    assert fetch(studio.url)[0] == 200


@pytest.mark.parametrize("path", ["static/..%2f..%2f..%2fetc%2fpasswd", "export/py", "export/../../x", "upload/../x"])
def test_other_paths_lead_nowhere(studio, path):
    assert fetch(f"{studio.url}{path}")[0] in (403, 404)


@pytest.mark.parametrize(
    "fragments",
    [
        ["nonsense"],
        [b"\x00\xff" * 40],
        ["{}", "{}", "{}"],
        ['{"msgid": "1", "msgtype": "PATCH-DOC"}', "{}", '{"events": [{"kind": "ModelChanged"}]}'],
        ['{"msgid": "1", "msgtype": "NO-SUCH-THING"}', "{}", "{}"],
        ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": 1000000}', "{}", '{"events": []}'],
        ["[" * 100_000],
        ["x" * (2**20 + 1)],
    ],
    ids=["text", "bytes", "empty", "event", "type", "buffers", "deep", "large"],
)
def test_malformed_messages_end_their_connection_and_nothing_else(studio, fragments):
    token, _ = opened(studio)
    other, _ = opened(studio)

    async def go():
        witness = await connected(studio, other)
        assert await asyncio.wait_for(witness.read_message(), 20) is not None
        connection = await connected(studio, token)
        assert await asyncio.wait_for(connection.read_message(), 20) is not None
        for fragment in fragments:
            try:
                await connection.write_message(fragment, binary=isinstance(fragment, bytes))
            except Exception:
                break  # it is closed already
        await asyncio.sleep(0.2)
        header, rest = '{"msgid": "7", "msgtype": "PULL-DOC-REQ"}', "{}"
        for part in (header, rest, rest):
            await witness.write_message(part)
        answer = ""
        while "PULL-DOC-REPLY" not in answer:
            answer = str(await asyncio.wait_for(witness.read_message(), 20))
        await finish(witness)
        await finish(connection)

    asyncio.run(go())
    assert fetch(studio.url)[0] == 200


def test_beyond_this_machine_a_token_is_needed():
    with running("circle", address="0.0.0.0", hosts=("studio.example",)) as studio:
        base, _, token = studio.url.partition("?token=")
        assert len(token) >= 32
        assert fetch(base)[0] == 403
        assert fetch(f"{base}?token=wrong")[0] == 403
        assert fetch(f"{base}autoload.js?bokeh-autoload-element=1")[0] == 403
        with pytest.raises(HTTPClientError, match="403"):
            first_message(studio, "none")
        status, headers, _ = fetch(studio.url)
        assert status == 200
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert fetch(base, headers={"Cookie": cookie.partition(";")[0]})[0] == 200
        assert fetch(studio.url, headers={"Host": f"studio.example:{studio.port}"})[0] == 200


def test_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "::", "192.168.1.4", "localhost.example")))


def test_what_it_is_started_with(tmp_path):
    np.save(tmp_path / "table.npy", np.arange(12.0).reshape(4, 3))
    with running(tmp_path / "table.npy") as studio:
        assert fetch(studio.url)[0] == 200
    with pytest.raises(ValueError, match="neither a file nor a bundled data set"):
        serve("nonesuch", show=False)
    with pytest.raises(ValueError, match="NaN at row 1"):
        serve(np.array([[1.0, 2.0], [np.nan, 1.0]]), show=False)
    with pytest.raises(ValueError, match="does not exist"):
        serve(folder=tmp_path / "none", show=False)


def test_the_folder_of_its_own_is_deleted_in_the_end():
    with running("circle") as studio:
        _, session = opened(studio)
        fetch(f"{studio.url}upload?session={session}&name=a.csv", method="POST", body="1,2\n3,4\n")
        folder = studio.pages[session].tables.folder
        assert len(list(folder.iterdir())) == 1
    assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="SIGTERM is of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_folder_is_deleted_when_a_signal_ends_the_studio(tmp_path, number):
    code = "from equipoise.studio import serve; serve('circle', show=False, n_jobs=1)"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().startswith("Equipoise studio at http://127.0.0.1:")
            assert [path.name.startswith("equipoise-studio-") for path in tmp_path.iterdir()] == [True]
            time.sleep(0.3)  # until it serves
            process.send_signal(number)
            assert process.stdout.read() == "studio closed\n" and process.wait(20) == 0
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


def test_a_handler_that_was_not_set_from_python_is_left_as_the_default(monkeypatch):
    put = []
    monkeypatch.setattr(signal, "signal", lambda number, handler: put.append((number, handler)))
    with stop_on_sigterm(None):
        pass
    assert [number for number, _ in put] == [signal.SIGTERM] * 2 and put[1][1] is signal.SIG_DFL

"""The studio server: access control, rejected requests, and robustness to malformed messages."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

pytest.importorskip("bokeh")
from support.studio import SECONDS, close_websocket, connect, fetch, first_message, open_session, running
from tornado.httpclient import HTTPClientError

from equipoise.studio.limits import Limits
from equipoise.studio.server.guard import is_loopback
from equipoise.studio.server.serve import serve, stop_on_sigterm
from equipoise.studio.server.temporary_folder import TemporaryFolder

LIMIT = 4096


@pytest.fixture(scope="module")
def studio():
    with running("circle", limit=Limits(upload=LIMIT, pages=1000)) as studio:
        yield studio


def test_page_is_served_and_its_websocket_opens(studio):
    token, _ = open_session(studio)
    assert first_message(studio, token) is not None
    assert first_message(studio, token, f"http://127.0.0.1:{studio.port}") is not None
    assert studio.guard.token is None and "token" not in studio.url


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:1", "http://127.0.0.1.evil.example", "null"]
)
def test_foreign_origins_are_rejected(studio, origin):
    token, session = open_session(studio)
    with pytest.raises(HTTPClientError, match="403"):
        first_message(studio, token, origin)
    upload = f"{studio.url}upload?session={session}&name=a.csv"
    assert fetch(upload, method="POST", body="1,2\n3,4\n", headers={"Origin": origin})[0] == 403


def test_foreign_host_names_are_rejected(studio):
    assert fetch(studio.url, headers={"Host": f"evil.example:{studio.port}"})[0] == 403
    assert fetch(studio.url, headers={"Host": f"localhost:{studio.port}"})[0] == 200


def test_forged_sessions_are_rejected(studio):
    token, _ = open_session(studio)
    assert fetch(f"{studio.url}upload?session=nobody&name=a.csv", method="POST", body="1,2\n3,4\n")[0] == 403
    assert fetch(f"{studio.url}export/csv?session=")[0] == 403
    for forged in (token[:-4] + "AAAA", "nonsense"):
        closed = False
        try:
            closed = first_message(studio, forged) is None
        except HTTPClientError:
            closed = True
        assert closed


def test_uploads_are_checked_for_size_and_format(studio):
    _, session = open_session(studio)
    upload = f"{studio.url}upload?session={session}&name="
    status, _, body = fetch(upload + "table.csv", method="POST", body="1,2\n3,4\n")
    assert status == 200 and json.loads(body)["data"].startswith("file:table-")
    status, _, body = fetch(upload + "large.csv", method="POST", body="1,2\n" * LIMIT)
    assert (
        status == 413 and json.loads(body)["message"] == "the file exceeds the limit of 4 kB; use fewer rows or columns"
    )
    status, _, body = fetch(upload + "..%2F..%2Fx.py", method="POST", body="1,2\n3,4\n")
    assert status == 400 and "unknown format '.py'; upload a .csv, .tsv or .npy file" in json.loads(body)["message"]
    status, _, body = fetch(upload + "ragged.csv", method="POST", body="1,2\n3\n")
    message = json.loads(body)["message"]
    assert status == 400
    assert message.startswith("ragged.csv, line 2: expected 2 cells as in the first row, got 1")


def test_upload_without_content_length_is_cut_off_at_the_limit(studio):
    _, session = open_session(studio)

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
def test_other_paths_are_not_served(studio, path):
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
    ids=["text", "bytes", "empty", "bad event", "unknown type", "too many buffers", "deep nesting", "too large"],
)
def test_malformed_messages_do_not_affect_other_sessions(studio, fragments):
    token, _ = open_session(studio)
    other, _ = open_session(studio)

    async def go():
        witness = await connect(studio, other)
        assert await asyncio.wait_for(witness.read_message(), SECONDS) is not None
        connection = await connect(studio, token)
        assert await asyncio.wait_for(connection.read_message(), SECONDS) is not None
        for fragment in fragments:
            try:
                await connection.write_message(fragment, binary=isinstance(fragment, bytes))
            except Exception:
                break  # already closed
        header, rest = '{"msgid": "7", "msgtype": "PULL-DOC-REQ"}', "{}"
        for part in (header, rest, rest):
            await witness.write_message(part)
        answer = ""
        while "PULL-DOC-REPLY" not in answer:
            answer = str(await asyncio.wait_for(witness.read_message(), SECONDS))
        await close_websocket(witness)
        await close_websocket(connection)

    asyncio.run(go())
    assert fetch(studio.url)[0] == 200


def test_remote_access_requires_a_token():
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


def test_is_loopback_recognises_local_addresses():
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "::", "192.168.1.4", "localhost.example")))


def test_studio_starts_with_a_file_and_rejects_invalid_data(tmp_path):
    np.save(tmp_path / "table.npy", np.arange(12.0).reshape(4, 3))
    with running(tmp_path / "table.npy") as studio:
        assert fetch(studio.url)[0] == 200
    with pytest.raises(ValueError, match="neither a file nor a bundled data set"):
        serve("nonesuch", show=False)
    with pytest.raises(ValueError, match="NaN at row 1"):
        serve(np.array([[1.0, 2.0], [np.nan, 1.0]]), show=False)
    with pytest.raises(ValueError, match="is not an existing folder; create it or choose another"):
        serve(folder=tmp_path / "none", show=False)


def test_temporary_folder_is_deleted_on_exit():
    with running("circle") as studio:
        _, session = open_session(studio)
        fetch(f"{studio.url}upload?session={session}&name=a.csv", method="POST", body="1,2\n3,4\n")
        folder = studio.pages[session].tables.folder
        assert len(list(folder.iterdir())) == 1
    assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="requires POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_temporary_folder_is_deleted_after_a_signal(tmp_path, number):
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in background jobs
    code += "; from equipoise.studio import serve; serve('circle', show=False, n_jobs=1)"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("Equipoise studio at http://127.0.0.1:")
            assert [path.name.startswith("equipoise-studio-") for path in tmp_path.iterdir()] == [True]
            assert fetch(line.split()[3])[0] == 200  # it serves
            process.send_signal(number)
            assert process.stdout.read() == "studio closed\n" and process.wait(SECONDS) == 0
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="requires POSIX locks")
def test_temporary_folders_of_killed_studios_are_deleted_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = ["equipoise-studio-killed", "equipoise-studio-empty", "equipoise-studio-foreign", "other"]
    for name in names:
        (tmp_path / name).mkdir()
    for name in ("equipoise-studio-killed/.lock", "equipoise-studio-killed/a.csv", "equipoise-studio-foreign/a.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "equipoise-studio-link").symlink_to(tmp_path / "other")
    first = TemporaryFolder()
    kept = {"equipoise-studio-foreign", "equipoise-studio-link", "other"}
    assert {path.name for path in tmp_path.iterdir()} == {*kept, first.path.parent.name}
    second = TemporaryFolder()
    assert first.path.is_dir() and list(second.path.iterdir()) == []
    first.delete()
    second.delete()
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_sigterm_handler_not_set_from_python_is_reset_to_default(monkeypatch):
    installed = []
    monkeypatch.setattr(signal, "signal", lambda number, handler: installed.append((number, handler)))
    with stop_on_sigterm(None):
        pass
    assert [number for number, _ in installed] == [signal.SIGTERM] * 2 and installed[1][1] is signal.SIG_DFL

"""Limits of the studio: connections, slow clients, pages, uploads, memory and time; and its security headers."""

import json
import logging
import os
import re
import socket
import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("bokeh")
from support.studio import SECONDS, fetch, finish, inject_markup, open_session, opened_page, running, wait_until

from equipoise.data import Dataset
from equipoise.studio.data_sources import DataSources
from equipoise.studio.limits import GB, Limits
from equipoise.studio.page.template import NONCE_MARK, mark_scripts
from equipoise.studio.server import connections
from equipoise.studio.session.player import check_memory
from equipoise.studio.session.recipe import Recipe

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"  # a header without its end


def dial(studio):
    """Open a connection to a studio."""
    return socket.create_connection(("127.0.0.1", studio.port), timeout=SECONDS)


def streams(studio):
    return studio._server._http.streams


def read_all(connection):
    """Read until the server closes the connection."""
    parts = []
    try:
        while part := connection.recv(2**16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("value", [0, -1, float("nan"), True, "many"])
def test_limits_must_be_positive_numbers(value):
    with pytest.raises(ValueError, match=f"the limit 'pages' must be a positive number, got {re.escape(repr(value))}"):
        Limits(pages=value)


def test_connections_beyond_the_limit_are_refused_without_a_traceback(caplog):
    with running("circle", limit=Limits(connections=8)) as studio, caplog.at_level(logging.WARNING):
        held = [dial(studio) for _ in range(8)]
        wait_until(lambda: len(streams(studio)) == 8)
        for _ in range(40):
            with dial(studio) as refused:
                assert b"503 Service Unavailable" in read_all(refused)
        assert len(streams(studio)) == 8
        warnings = [record for record in caplog.records if record.name == connections.__name__]
        assert [record.getMessage() for record in warnings] == [
            "there are 8 open connections, the maximum; new connections are refused"
        ]
        assert not any(record.exc_info for record in caplog.records)
        for connection in held:
            connection.close()
        wait_until(lambda: not streams(studio))
        assert fetch(studio.url)[0] == 200


@pytest.mark.skipif(os.name != "posix", reason="requires limits on file descriptors")
def test_studio_survives_without_free_file_descriptors(caplog, monkeypatch):
    """When accept fails with EMFILE the studio pauses, logs one line, and serves again afterwards."""
    monkeypatch.setattr(connections, "RETRY", 0.01)
    with running("circle") as studio, caplog.at_level(logging.WARNING):
        failing, failures = threading.Event(), []
        accept = studio._server._http._accept

        def no_descriptors(listening):
            if failing.is_set():
                failures.append(1)
                raise OSError(24, "Too many open files")
            accept(listening)

        monkeypatch.setattr(studio._server._http, "_accept", no_descriptors)
        failing.set()
        with dial(studio):
            wait_until(lambda: len(failures) >= 3)
            failing.clear()
            assert fetch(studio.url)[0] == 200
        said = [record for record in caplog.records if record.name == connections.__name__]
        assert [record.getMessage() for record in said] == [
            "cannot accept a connection: Too many open files; trying again every second"
        ]
        assert not any(record.exc_info for record in caplog.records)


def test_connections_use_at_most_half_of_the_file_descriptors(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 4096))
    with running("circle") as studio:
        assert studio._server._http.maximum == 32


def test_clients_that_send_or_take_nothing_are_dropped():
    with running("circle", limit=Limits(idle=0.2, stall=0.2)) as studio:
        with dial(studio) as slow:
            slow.sendall(HALF)
            assert read_all(slow) == b""  # closed
        request = f"GET /static/js/bokeh.min.js HTTP/1.1\r\nHost: 127.0.0.1:{studio.port}\r\n\r\n".encode()
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.settimeout(SECONDS)
            stalled.connect(("127.0.0.1", studio.port))
            stalled.sendall(20 * request)  # far more than the buffers of the system hold, and never read
            wait_until(lambda: len(streams(studio)) == 1)
            wait_until(lambda: not streams(studio))
        assert fetch(studio.url)[0] == 200


def test_pages_beyond_the_limit_are_refused():
    with running("circle", limit=Limits(pages=2)) as studio:
        sessions = [open_session(studio)[1] for _ in range(2)]
        assert sorted(studio.pages) == sorted(sessions)
        for path in ("", "autoload.js?bokeh-autoload-element=1"):
            status, _, body = fetch(studio.url + path)
            assert status == 503 and b"the number of open pages has reached its maximum, 2; close one" in body
        assert sorted(studio.pages) == sorted(sessions)
        assert fetch(f"{studio.url}static/js/bokeh.min.js")[0] == 200  # the open pages still load


def test_total_size_and_number_of_uploads_are_limited(tmp_path):
    tables = DataSources(tmp_path, Limits(upload=1000, uploads=20))
    first = tables.store("a.csv", b"1,2\n3,4\n")
    assert tables.store("a.csv", b"1,2\n3,4\n") == first  # the same content again
    tables.store("b.csv", b"1,2\n3,5\n")
    with pytest.raises(ValueError, match="all uploads together would exceed 0 kB; restart the studio"):
        tables.store("c.csv", b"1,2\n3,6\n")
    assert len(list(tmp_path.iterdir())) == 2


def test_uploads_are_listed_only_on_the_page_that_opened_them(tmp_path):
    pytest.importorskip("bokeh")
    from equipoise.studio.page.layout import Layout

    (tmp_path / "own.csv").write_text("1,2\n3,4\n")
    tables = DataSources(tmp_path, Limits())
    first, second = (Layout(session, tables, lambda name, value: None) for session in ("a", "b"))
    stored = tables.store("mine.csv", b"1,2\n3,5\n")
    first.announce(stored)
    second.announce("named:iris")
    own = ("file:own.csv", "own.csv")
    assert first.data.options["Files"] == [(stored, "mine.csv"), own] and second.data.options["Files"] == [own]
    first.announce("named:iris")
    assert (stored, "mine.csv") in first.data.options["Files"]
    second.announce(stored)  # from a link
    assert (stored, "mine.csv") in second.data.options["Files"]


def test_uploads_at_the_same_time_are_limited():
    with running("circle", limit=Limits(uploading=1)) as studio:
        _, session = open_session(studio)
        path = f"/upload?session={session}&name=a.csv"
        with dial(studio) as slow:
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{studio.port}\r\nContent-Length: 8\r\n\r\n"
            slow.sendall(head.encode() + b"1,2\n")  # half of the file
            refused = lambda: fetch(studio.url[:-1] + path, method="POST", body="1,2\n3,4\n")  # noqa: E731
            wait_until(lambda: refused()[0] == 503)
            assert "other uploads are running" in json.loads(refused()[2])["message"]
            slow.sendall(b"3,4\n")
            assert slow.recv(2**16).startswith(b"HTTP/1.1 200")
        assert refused()[0] == 200


def test_memory_of_a_page_is_limited():
    X = SimpleNamespace(shape=(500_000, 100))
    with pytest.raises(
        ValueError, match=r"a table of 500,000 × 100 values need about .* GB, but a page may use only 1.0 GB"
    ):
        check_memory(X, [Recipe()], GB)
    check_memory(X, [Recipe()], 64 * GB)
    small = SimpleNamespace(shape=(70_000, 50))
    check_memory(small, [Recipe()], 2 * GB)
    for recipes in ([Recipe(first=(("perplexity", 500.0),))], [Recipe()] * 20):
        with pytest.raises(ValueError, match="one run instead of two"):
            check_memory(small, recipes, 2 * GB)


def test_table_too_large_for_a_page_shows_a_message(tmp_path):
    X = np.random.default_rng(0).normal(size=(1200, 50))
    with opened_page(tmp_path, Limits(memory=2**20), Dataset("large", X, None, ())) as page:
        finish(page)
        assert "need about 0.4 GB, but a page may use only 0.0 GB" in page.layout.message.text
        assert not page._player.worker.runs


def test_playing_pauses_at_the_time_limit(tmp_path):
    with opened_page(tmp_path, Limits(play=0.01)) as page:
        finish(page)
        page._play()
        wait_until(lambda: page._player.playing)
        wait_until(lambda: page._tick() or not page._player.playing)
        assert page.layout.message.text == "Paused after 0.000167 min; press Play to continue."
        assert not page._player.play_requested


def test_responses_have_security_headers():
    with running("circle") as studio:
        status, headers, _ = fetch(studio.url)
        policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
        assert status == 200 and policy["default-src"] == policy["frame-ancestors"] == "'none'"
        assert re.fullmatch(r"'nonce-[\w-]{43}' 'unsafe-eval'", policy["script-src"])
        assert policy["connect-src"] == "'self'" and policy["base-uri"] == policy["form-action"] == "'none'"
        _, session = open_session(studio)
        for path in ("static/js/bokeh.min.js", f"export/csv?session={session}", "nothing", "export/csv?session=x"):
            headers = fetch(studio.url + path)[1]
            assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["X-Frame-Options"] == "DENY"
            assert headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_only_the_scripts_of_the_studio_have_the_nonce(monkeypatch):
    evil = "<script>document.title = 'run'</script>"
    inject_markup(monkeypatch, evil)
    with running("circle") as studio:
        answers = [fetch(studio.url)[1:] for _ in range(2)]
    nonces = set()
    for headers, body in answers:
        html = body.decode()
        (nonce,) = re.findall(r"'nonce-([^']*)'", headers["Content-Security-Policy"])
        assert "'sha256-" not in headers["Content-Security-Policy"] and NONCE_MARK not in html
        assert int(headers["Content-Length"]) == len(body)
        tags = [tag for tag in re.findall(r"<script[^>]*>", html) if "application/json" not in tag]
        assert tags.count("<script>") == html.count(evil) == 2  # the injected ones
        assert len(tags) > 4 and all(f' nonce="{nonce}"' in tag for tag in tags if tag != "<script>")
        nonces.add(nonce)
    assert len(nonces) == 2


def test_markup_cannot_borrow_the_nonce_of_another_script():
    """Only the first script of Bokeh's markup, which Bokeh wrote itself, is marked."""
    own = '<script type="application/json" id="x">{}</script>\n<script type="text/javascript">start()</script>'
    marked = mark_scripts(f"{own}<script>evil()</script>", 1)
    assert marked.count(f'<script nonce="{NONCE_MARK}"') == 1
    assert f'<script nonce="{NONCE_MARK}" type="text/javascript">start()' in marked and "<script>evil()" in marked


@pytest.mark.parametrize(
    ("site", "mode", "target", "path", "allowed"),
    [
        ("none", "navigate", "document", "", True),
        ("same-origin", "no-cors", "script", "static/js/bokeh.min.js", True),
        ("cross-site", "navigate", "document", "?data=named:circle", True),  # a link was followed
        ("cross-site", "navigate", "iframe", "", False),
        ("cross-site", "no-cors", "script", "autoload.js?bokeh-autoload-element=1", False),
        ("same-site", "no-cors", "script", "autoload.js?bokeh-autoload-element=1", False),
        ("cross-site", "navigate", "document", "export/csv?session=SESSION", False),
        ("cross-site", "no-cors", "image", "export/png?session=SESSION", False),
    ],
)
def test_other_sites_may_link_to_the_studio_but_not_include_it(shared, site, mode, target, path, allowed):
    _, session = open_session(shared)
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": target}
    status = fetch(shared.url + path.replace("SESSION", session), headers=headers)[0]
    assert status == (200 if allowed else 403)


@pytest.fixture(scope="module")
def shared():
    with running("circle") as studio:
        yield studio

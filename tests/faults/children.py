"""Run functions in forked children, with a time limit; forking saves the second that an import takes."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LIMIT = 120.0  # seconds until a child counts as hung; the machine may be busy
INTERRUPTED = 130


@dataclass(frozen=True)
class Ended:
    """How a child ended: exit code or minus the signal (None: it hung and was killed), its output, its duration."""

    code: int | None
    out: str
    err: str
    seconds: float


def fork(function: Callable[[], int | None]) -> int:
    """Return the number of a new process that runs `function` and exits with its result."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        code = function() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class Child:
    """A forked process that runs `function` in `folder`, with its output in files of the folder."""

    def __init__(self, function: Callable[[], int | None], folder: Path):
        self._streams = [folder / "stdout.txt", folder / "stderr.txt"]
        self._begin = time.monotonic()
        self.pid = fork(lambda: _run(function, folder, self._streams))

    def output(self) -> str:
        """Return what the child has printed so far."""
        return self._streams[0].read_text() if self._streams[0].exists() else ""

    def wait(self, until: float = LIMIT) -> Ended:
        """Wait for the end; kill the child after `until` seconds."""
        while (code := self.poll()) is None:
            if time.monotonic() - self._begin > until:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return self._ended(None)
            time.sleep(0.005)
        return self._ended(code)

    def poll(self) -> int | None:
        """Return the exit code, or None while the child runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def _ended(self, code: int | None) -> Ended:
        out, err = (path.read_text(errors="replace") if path.exists() else "" for path in self._streams)
        return Ended(code, out, err, time.monotonic() - self._begin)


def _run(function: Callable[[], int | None], folder: Path, streams: list[Path]) -> int:
    """Return the exit code that the Python interpreter would give."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        for number, path in enumerate(streams, start=1):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        os.chdir(folder)
        tempfile.tempdir = str(folder)
        return function() or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1

"""Start ranks as processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .group import DEFAULT_TIMEOUT, checked_timeout
from .rank_error import UNKNOWN, RankError
from .rank_monitor import PATIENCE_SECONDS

POLL_SECONDS = 0.05
END_SECONDS = 3.0  # from the request to end until a process is killed

# Runs a command that ends when its parent ends, however that happens. Linux: the kernel kills the command, which keeps
# this setting through exec. Elsewhere: standard input is a pipe, which is closed when the parent ends.
GUARD_BY_KERNEL = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
GUARD_BY_PIPE = """
import os, subprocess, sys, threading
command = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL)
def watch():
    os.read(0, 1)
    command.kill()
threading.Thread(target=watch, daemon=True).start()
status = command.wait()
os._exit(status if status >= 0 else 128 - status)
"""


def run_ranks(
    target: str | Sequence[str],
    ranks: int,
    arguments: Sequence[Any] = (),
    timeout: float = DEFAULT_TIMEOUT,
    variables: Mapping[str, str] | None = None,
    interactive: bool = False,
) -> list[Any]:
    """Run a function or a command as several ranks on this machine, and return the results.

    Every rank is a process with its share of the cores (OMP_NUM_THREADS). The output of rank 0 is shown. When a rank
    fails, the others are ended; no process remains when this function returns, is interrupted, or when the calling
    process is killed.

    Parameters
    ----------
    target : str or sequence of str
        "module:function" or "file.py:function", called as `function(group, *arguments)`; or a command, the path of a
        program and its arguments, in which `current_group()` returns the group.
    ranks : int
        The number of processes.
    arguments : sequence, default=()
        Further arguments of the function; what JSON can represent.
    timeout : float, default=300
        The time limit of a collective, and for the last rank to end after the first has, in seconds.
    variables : mapping of str to str, optional
        Further environment variables.
    interactive : bool, default=False
        For programs that people start at a terminal: errors of the function are shown without traceback, and the first
        Ctrl-C sends SIGINT to rank 0, which decides how the ranks end; the second ends them at once.

    Returns
    -------
    list
        What the function returned on each rank, as JSON can represent it; None for each rank of a command.

    Raises
    ------
    RankError
        The error of the rank that failed first.
    """
    if not isinstance(ranks, int) or ranks < 1:
        raise ValueError(f"ranks={ranks!r} must be a positive integer")
    if interactive and not isinstance(target, str):
        raise ValueError("interactive is for functions; a command decides itself how it shows errors and ends")
    timeout = checked_timeout(timeout)
    with tempfile.TemporaryDirectory(prefix="equipoise-ranks-") as name:
        run = _Run(Path(name), timeout, PATIENCE_SECONDS if isinstance(target, str) else 0.0)
        try:
            port = free_port("127.0.0.1")
            for rank in range(ranks):
                command = _command(target, arguments, timeout, run.report(rank))
                command += ["--brief"] if interactive else []
                run.start(command, {**os.environ, **(variables or {}), **rank_variables(rank, ranks, port)})
            try:
                run.wait()
            except KeyboardInterrupt as interrupt:
                if interactive:
                    run.ask_to_stop()
                raise interrupt
            return [run.result(rank) if isinstance(target, str) else None for rank in range(ranks)]
        finally:
            run.end()


def free_port(address: str) -> int:
    """Return a port of this machine that no process uses."""
    with socket.socket() as listener:
        listener.bind((address, 0))
        return int(listener.getsockname()[1])


def rank_variables(rank: int, ranks: int, port: int) -> dict[str, str]:
    """Return the environment variables of a rank on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = str(max(cores // ranks, 1))
    variables = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": port}
    return {
        **{key: str(value) for key, value in variables.items()},
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads),
        "MASTER_ADDR": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
        "TORCH_CPP_LOG_LEVEL": os.environ.get("TORCH_CPP_LOG_LEVEL", "ERROR"),
    }


def _command(target: str | Sequence[str], arguments: Sequence[Any], timeout: float, report: Path) -> list[str]:
    if not isinstance(target, str):
        if arguments:
            raise ValueError("arguments are for functions; append those of a command to the command itself")
        if not target:
            raise ValueError("target is empty; pass module:function, or a command and its arguments")
        return list(target)
    module = "equipoise.distributed.rank_process"
    options = ["--timeout", str(timeout), "--report", str(report)]
    return [sys.executable, "-m", module, target, json.dumps(list(arguments)), *options]


@dataclass
class _Ended:
    """A rank that ended with an error: its exit status, negative for a signal, and the error it wrote."""

    rank: int
    status: int
    error: RankError | None


class _Run:
    """The processes of a run, and the files in which they leave results and error output.

    `patience` is how long to wait for what other ranks know about one that was killed, in seconds.
    """

    def __init__(self, folder: Path, timeout: float, patience: float):
        self._folder, self._timeout, self._patience = folder, timeout, patience
        self._processes: list[subprocess.Popen[bytes]] = []

    def report(self, rank: int) -> Path:
        return self._folder / f"{rank}.json"

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        """Start the next rank; the output of rank 0 is shown, the error output of the others is kept in a file."""
        rank = len(self._processes)
        linux = sys.platform == "linux"
        guard = [sys.executable, "-S", "-c", GUARD_BY_KERNEL if linux else GUARD_BY_PIPE, str(os.getpid())]
        with (self._folder / f"{rank}.err").open("wb") as errors:
            self._processes.append(
                subprocess.Popen(
                    [*guard, *command],
                    env=environment,
                    stdin=subprocess.DEVNULL if linux else subprocess.PIPE,
                    stdout=None if rank == 0 else subprocess.DEVNULL,
                    stderr=None if rank == 0 else errors,
                    start_new_session=True,
                )
            )

    def wait(self) -> None:
        """Wait until all ranks have ended; raise the error of the one that failed first."""
        deadline = None
        while any(process.poll() is None for process in self._processes):
            self._raise_first()
            ended = [process.returncode is not None for process in self._processes]
            if any(ended) and deadline is None:
                deadline = time.monotonic() + self._timeout
            if deadline is not None and time.monotonic() > deadline:
                cause = f"did not end within {self._timeout:g} s of rank {ended.index(True)}"
                raise RankError(ended.index(False), socket.gethostname(), "end", cause)
            time.sleep(POLL_SECONDS)
        self._raise_first()

    def ask_to_stop(self) -> None:
        """Send SIGINT to rank 0, and wait until all ranks have ended, or one has failed."""
        _signal(self._processes[0], signal.SIGINT)
        with suppress(RankError):
            self.wait()

    def result(self, rank: int) -> Any:
        return self._read(rank).get("value")

    def end(self) -> None:
        """End all processes that still run."""
        running = [process for process in self._processes if process.poll() is None]
        for process in running:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
            _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # with the processes it started
            process.wait()
            if process.stdin is not None:
                process.stdin.close()

    def _raise_first(self) -> None:
        failed = [
            _Ended(rank, process.returncode, self._error(rank))
            for rank, process in enumerate(self._processes)
            if process.poll() not in (None, 0)
        ]
        if failed:
            silent = next((one for one in failed if one.error is None), None)
            error = self._explain(silent) if silent is not None else failed[0].error
            assert error is not None
            if error.rank and (text := self._error_output(error.rank)):
                print(text, file=sys.stderr)
            raise error

    def _explain(self, ended: _Ended) -> RankError:
        """Return the error of a rank that left none; another rank may know the stage."""
        cause = f"exit status {ended.status}"
        if ended.status < 0:
            cause = f"killed by {signal.Signals(-ended.status).name}"
        elif ended.rank and (lines := self._error_output(ended.rank).splitlines()):
            cause += f": {lines[-1]}"
        deadline = time.monotonic() + self._patience
        stage = UNKNOWN
        while time.monotonic() < deadline and stage == UNKNOWN:
            others = [self._error(rank) for rank in range(len(self._processes)) if rank != ended.rank]
            stage = next((other.stage for other in others if other is not None and other.rank == ended.rank), stage)
            if all(process.poll() is not None for process in self._processes):
                break
            time.sleep(POLL_SECONDS)
        return RankError(ended.rank, socket.gethostname(), stage, cause)

    def _error_output(self, rank: int) -> str:
        path = self._folder / f"{rank}.err"
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""

    def _error(self, rank: int) -> RankError | None:
        fields = self._read(rank).get("error")
        return None if fields is None else RankError(*fields)

    def _read(self, rank: int) -> dict[str, Any]:
        path = self.report(rank)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a process and those it started."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)

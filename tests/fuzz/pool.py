"""A pool of worker processes; one that dies or takes too long is replaced."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent  # tests/
START_LIMIT = 300  # seconds for the imports of a worker on a busy machine
CASES_PER_WORKER = 2000  # memory that other libraries keep is returned now and then


class Worker:
    """One process that runs cases, one at a time."""

    def __init__(self, time_limit: float, memory_limit: int):
        self.time_limit, self.memory_limit = time_limit, memory_limit
        self.case: dict[str, Any] | None = None
        self._start()

    def _start(self) -> None:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH", "")]))
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker", str(self.time_limit), str(self.memory_limit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env={**os.environ, **threads, "PYTHONPATH": path, "MPLBACKEND": "Agg", "PYTHONWARNINGS": "ignore"},
        )
        self.done, self.ready = 0, False
        self.deadline = time.monotonic() + START_LIMIT

    def send(self, case: dict[str, Any]) -> None:
        """Give the worker a case."""
        if self.done >= CASES_PER_WORKER:
            self.restart()
        self.case = case
        if self.ready:
            self._write()

    def _write(self) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(self.case).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it died between two cases; its standard output ends too
        self.deadline = time.monotonic() + self.time_limit + 15  # it ends itself before, with a traceback

    def receive(self) -> dict[str, Any] | None:
        """Return the verdict of the case, or None if the worker only reported that it is ready."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return self._buried()
        answer = json.loads(line)
        if "ready" in answer:
            self.ready = True
            if self.case is not None:
                self._write()
            return None
        self.done += 1
        self.case = None
        return answer

    def _buried(self) -> dict[str, Any]:
        """Return the verdict of a case that ended the process, and start another one."""
        code = self.process.wait()
        text = self._errors()
        started, self.case = self.ready, None
        self.restart()
        if not started:
            raise RuntimeError(f"a worker did not start:\n{text}")
        what = "hang" if "Timeout (" in text else f"process ended with {code}"
        return {"verdict": "bad", "cause": f"{what} at {last_place(text)}", "traceback": text}

    def _errors(self) -> str:
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")[-6000:]

    def timed_out(self) -> dict[str, Any] | None:
        """Return the verdict of a hang if the worker is past its deadline, and replace it."""
        if self.case is None or time.monotonic() < self.deadline:
            return None
        self.case = None
        self.restart()
        return {"verdict": "bad", "cause": "hang that could not be interrupted", "traceback": ""}

    def restart(self) -> None:
        """Replace the process."""
        self.stop()
        self._start()

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.stderr):
            if stream is not None:
                stream.close()


def last_place(text: str) -> str:
    """Return the innermost line of our code in a traceback of faulthandler."""
    lines = [line.strip() for line in text.splitlines() if "equipoise/" in line and ", line " in line]
    return lines[0].partition("equipoise/")[2] if lines else "an unknown place"


def run_cases(
    cases: Iterable[dict[str, Any]],
    *,
    workers: int = 2,
    time_limit: float = 60.0,
    memory_limit: int = 8 * 2**30,
    report: Callable[[int], None] | None = None,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield (case, verdict) for every case, in the order in which they end."""
    waiting = iter(cases)
    pool = [Worker(time_limit, memory_limit) for _ in range(workers)]
    finished = 0
    try:
        busy = [worker for worker in pool if _feed(worker, waiting)]
        while busy:
            for worker, case, verdict in _collect(busy):
                finished += 1
                if report is not None:
                    report(finished)
                yield case, verdict
                if not _feed(worker, waiting):
                    busy.remove(worker)
    finally:
        for worker in pool:
            worker.stop()


def _feed(worker: Worker, waiting: Iterator[dict[str, Any]]) -> bool:
    case = next(waiting, None)
    if case is not None:
        worker.send(case)
    return case is not None


def _collect(busy: list[Worker]) -> list[tuple[Worker, dict[str, Any], dict[str, Any]]]:
    """Wait for answers up to a second and return them; a worker past its deadline has a verdict too."""
    done = []
    with selectors.DefaultSelector() as selector:
        for worker in busy:
            selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        ready = [key.data for key, _ in selector.select(timeout=1.0)]
    for worker in busy:
        case = worker.case
        assert case is not None
        verdict = worker.receive() if worker in ready else worker.timed_out()
        if verdict is not None:
            done.append((worker, case, verdict))
    return done

"""Processes that keep the cores busy while a test runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 1800  # seconds after which a busy process ends by itself, should the test that started it be killed
LOOP = f"import time\nend = time.monotonic() + {LONGEST}\nwhile time.monotonic() < end: sum(range(10_000))"


@contextmanager
def busy_cores(processes: int) -> Iterator[None]:
    """Run this many processes that never sleep within the context."""
    started = []
    try:
        for _ in range(processes):
            started.append(subprocess.Popen([sys.executable, "-S", "-c", LOOP]))
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()

"""Ranks of a benchmark as processes on this machine, and the memory of all of them together."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from common import ROOT, THREAD_LIMITS

SAMPLED = 0.05  # seconds between two looks at the memory


class Outcome(NamedTuple):
    """Results of the ranks, or the last line of the error output of the first that failed, and samples of memory."""

    results: list[dict[str, Any]]
    failed: str | None
    seconds: float
    memory: list[tuple[float, float]]  # time of the clock, and MB of all ranks together


def run_ranks(script: str, request: dict[str, Any], size: int, threads: int = 1, sampled: float = SAMPLED) -> Outcome:
    """Run `script --child FILE` once for each rank and return their results.

    The file contains the request, and each rank overwrites its own copy with its result. RANK, WORLD_SIZE, MASTER_ADDR
    and MASTER_PORT are set as torchrun sets them. The memory of all processes is the sum of their proportional set
    sizes: a page that several share is counted once; it is sampled every `sampled` seconds.
    """
    with TemporaryDirectory() as folder:
        files = [Path(folder) / f"rank-{rank}.json" for rank in range(size)]
        address = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
        limits = {name: str(threads) for name in THREAD_LIMITS}
        start, processes = time.perf_counter(), []
        for rank, file in enumerate(files):
            file.write_text(json.dumps(request))
            environment = {**os.environ, **limits, **address, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            command = [sys.executable, str(ROOT / "benchmarks" / script), "--child", str(file)]
            with file.with_suffix(".err").open("w") as errors:
                processes.append(subprocess.Popen(command, env=environment, stderr=errors))
        memory = _watch(processes, sampled)
        seconds = time.perf_counter() - start
        for rank, process in enumerate(processes):
            if process.returncode:
                lines = files[rank].with_suffix(".err").read_text().strip().splitlines()
                reason = lines[-1] if lines else f"exit status {process.returncode}"
                return Outcome([], f"rank {rank}: {reason}", seconds, memory)
        return Outcome([json.loads(file.read_text()) for file in files], None, seconds, memory)


def _watch(processes: list[subprocess.Popen[bytes]], sampled: float) -> list[tuple[float, float]]:
    """Sample the memory of all processes until the last has ended."""
    samples = []
    while any(process.poll() is None for process in processes):
        samples.append((time.time(), sum(_proportional_size(process.pid) for process in processes)))
        time.sleep(sampled)
    return samples


def _proportional_size(pid: int) -> float:
    """Return the proportional set size of a process in MB; 0 if it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return 0.0


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

"""Trials in which one of several ranks is killed: the job ends, nothing keeps running, and resuming gives the map."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.support.processes import children, is_running, naming, rank_of

RANKS = 3
ROWS, COLUMNS, ITERATIONS = 6000, 8, 400
END_SECONDS = 60.0  # from the signal to the end of the job: far below the time limit of a collective, 300 s
COMMAND = (sys.executable, "-c", "import sys; from equipoise.cli import main; sys.exit(main())", "embed")


@dataclass(frozen=True)
class Kill:
    """A trial: the rank that was killed, when, what the job did then, and what resuming it gave."""

    victim: int
    moment: float  # seconds after the start of the job
    stage: str  # of the victim, as the error names it
    code: int
    took: float  # seconds from the signal to the end of the job
    saved: bool  # whether there was a checkpoint
    resumed: int  # ranks that resumed the job
    problems: tuple[str, ...]


def run_kills(count: int, seed: int, folder: Path) -> int:
    """Make trials and print each; return the number of failures."""
    failures = 0
    for number, kill in enumerate(kills(count, seed, folder)):
        how = "with" if kill.saved else "without"
        print(
            f"kill {number}: rank {kill.victim} of {RANKS} after {kill.moment:.1f} s, exit code {kill.code}"
            f" {kill.took:.1f} s later; {how} a checkpoint, {kill.resumed} ranks:"
            f" {'; '.join(kill.problems) or 'same bytes'}",
            flush=True,
        )
        failures += bool(kill.problems)
    return failures


def kills(count: int, seed: int, folder: Path):
    """Yield `count` trials in which a rank was killed; a job that ends before its signal is started again."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    table = folder / "X.npy"
    np.save(table, 4 * rng.normal(size=(12, COLUMNS))[rng.integers(12, size=ROWS)] + rng.normal(size=(ROWS, COLUMNS)))
    for ranks in (1, RANKS):  # the second is timed: its files are in the cache of the system
        start = time.monotonic()
        assert _embed(folder, "whole", ranks, resume=False).wait() == 0
        seconds = time.monotonic() - start
    number = attempt = 0
    while number < count:
        kill = _trial(f"job {attempt}", rng, folder, seconds)
        attempt += 1
        if kill is not None:
            number += 1
            yield kill


def _embed(folder: Path, name: str, ranks: int, *, resume: bool) -> subprocess.Popen[str]:
    options = ("--n-iter", str(ITERATIONS), "--perplexity", "10", "--ranks", str(ranks), "--plot", "none")
    files = ("--checkpoint", str(folder / f"{name}.eqc"), "--out", str(folder / f"{name}.npy"))
    command = [*COMMAND, str(folder / "X.npy"), *options, *files, *(["--resume"] if resume else [])]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _trial(name: str, rng: np.random.Generator, folder: Path, seconds: float) -> Kill | None:
    """Kill a rank at a random moment and resume the job; None if the job ended before."""
    victim, wait, resumed = int(rng.integers(RANKS)), float(rng.uniform(0, 0.95)) * seconds, int(rng.integers(1, 4))
    job, begin = _embed(folder, name, RANKS, resume=False), time.monotonic()
    time.sleep(wait)
    while job.poll() is None and victim not in (ranks := {rank_of(pid): pid for pid in children(job.pid)}):
        time.sleep(0.01)  # the ranks have not started yet
    started, killed = children(job.pid), time.monotonic()
    if job.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(ranks[victim], signal.SIGKILL)
    problems = []
    try:
        errors = job.communicate(timeout=END_SECONDS)[1].strip()
    except subprocess.TimeoutExpired:
        job.kill()
        errors = job.communicate()[1].strip()
        problems.append(f"did not end within {END_SECONDS:g} s")
    took = time.monotonic() - killed
    if job.returncode == 0:
        return None
    last = errors.splitlines()[-1] if errors else ""
    if job.returncode != 2 or f"rank {victim} " not in last:
        problems.append(f"exit code {job.returncode}, {errors!r}")
    if left := {pid for pid in started if is_running(pid)} | set(naming(str(folder / f"{name}.eqc"))):
        problems.append(f"still running: {sorted(left)}")
    saved = (folder / f"{name}.eqc").exists()
    again = _embed(folder, name, resumed, resume=True)
    if "error" in again.communicate()[1] or again.returncode:
        problems.append("could not be resumed")
    elif (folder / f"{name}.npy").read_bytes() != (folder / "whole.npy").read_bytes():
        problems.append("resumed to other bytes")
    stage = re.search(r'failed in "([^"]*)"', last)
    return Kill(
        victim, killed - begin, stage[1] if stage else "", job.returncode, took, saved, resumed, tuple(problems)
    )

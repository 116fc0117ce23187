"""Trials in which one of several ranks is killed: the job ends, nothing keeps running, and resuming gives the map."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from tests.support.processes import children, is_running, rank_of

RANKS = 3
ROWS, COLUMNS = 6000, 8
END_SECONDS = 60.0  # from the signal to the end of the job: far below the time limit of a collective, 300 s
COMMAND = (sys.executable, "-c", "import sys; from equipoise.cli import main; sys.exit(main())", "embed")


def run_kills(count: int, seed: int, folder: Path) -> int:
    """Make trials and print each; return the number of failures."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    table = folder / "X.npy"
    np.save(table, 4 * rng.normal(size=(12, COLUMNS))[rng.integers(12, size=ROWS)] + rng.normal(size=(ROWS, COLUMNS)))
    start = time.monotonic()
    whole = _embed(table, folder / "whole.npy", 1, folder / "whole.eqc", resume=False)
    assert whole.wait() == 0
    _embed(table, folder / "whole.npy", RANKS, folder / "whole.eqc", resume=False).wait()
    seconds = (time.monotonic() - start) / 2
    return sum(_trial(number, rng, folder, seconds) for number in range(count))


def _embed(table: Path, out: Path, ranks: int, checkpoint: Path, *, resume: bool) -> subprocess.Popen[str]:
    options = ("--n-iter", "1000", "--perplexity", "10", "--ranks", str(ranks), "--checkpoint", str(checkpoint))
    command = [*COMMAND, str(table), *options, *(["--resume"] if resume else []), "--out", str(out), "--plot", "none"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _trial(number: int, rng: np.random.Generator, folder: Path, seconds: float) -> bool:
    """Kill a rank at a random moment and resume; return whether something was wrong."""
    out, checkpoint, victim = folder / f"{number}.npy", folder / f"{number}.eqc", int(rng.integers(RANKS))
    job, begin = _embed(folder / "X.npy", out, RANKS, checkpoint, resume=False), time.monotonic()
    time.sleep(float(rng.uniform(0.1, 0.9)) * seconds)
    while job.poll() is None and victim not in (ranks := {rank_of(pid): pid for pid in children(job.pid)}):
        time.sleep(0.01)  # the ranks have not started yet
    moment, started = time.monotonic() - begin, children(job.pid)
    if job.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(ranks[victim], signal.SIGKILL)
    problems, killed = [], time.monotonic()
    try:
        errors = job.communicate(timeout=END_SECONDS)[1].strip()
    except subprocess.TimeoutExpired:
        job.kill()
        errors = job.communicate()[1]
        problems.append(f"did not end within {END_SECONDS:g} s")
    took = time.monotonic() - killed
    if job.returncode not in (0, 2) or (job.returncode == 2 and f"rank {victim} " not in errors.splitlines()[-1]):
        problems.append(f"exit code {job.returncode}, {errors!r}")
    if left := [pid for pid in started if is_running(pid)]:
        problems.append(f"still running: {left}")
    resumed, saved = int(rng.integers(1, RANKS + 1)), checkpoint.exists()
    again = _embed(folder / "X.npy", out, resumed, checkpoint, resume=True)
    if again.communicate()[1].count("error") or again.returncode:
        problems.append("could not be resumed")
    elif out.read_bytes() != (folder / "whole.npy").read_bytes():
        problems.append("resumed to other bytes")
    how = "with" if saved else "without"
    print(
        f"kill {number}: rank {victim} of {RANKS} after {moment:.1f} s, exit code {job.returncode} {took:.1f} s later;"
        f" {how} a checkpoint, {resumed} ranks: {'; '.join(problems) or 'same bytes'}",
        flush=True,
    )
    return bool(problems)

"""Many damaged files, read in worker processes with limits on memory and time."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .children import fork
from .corpus import Source, make_corpus
from .mutations import mutate

MEMORY = 2**30  # bytes that reading a damaged file may take; the files are below 1 MB
CPU_SECONDS = 5.0  # of one file
HUNG = 120.0  # seconds without a result


def run_mutations(count: int, seed: int, jobs: int, folder: Path) -> int:
    """Read `count` damaged files, print a summary, and return the number of failures."""
    folder.mkdir()
    sources = make_corpus(folder)
    undamaged = {name: _read(source, folder / f"undamaged.{source.suffix}") for name, source in sources.items()}
    work = [(list(range(job, count, jobs)), seed, sources, undamaged, folder / f"job {job}") for job in range(jobs)]
    pids = [fork(partial(_supervise, *arguments)) for arguments in work]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    results = [json.loads(line) for path in folder.glob("job */results.jsonl") for line in path.open()]
    bad = [result for result in results if result["verdict"] == "bad"]
    for result in bad:
        print(f"FAILED {result['number']}: {result['file']}, {result['mutation']}: {result['problem']}")
    counts = Counter(result["verdict"] for result in results)
    slowest = max((result["seconds"] for result in results), default=0.0)
    print(f"{len(results)} of {count} damaged files: {dict(counts)}; at most {slowest:.1f} s of CPU time each")
    return len(bad) + (count - len(results)) + sum(map(bool, codes))


def _read(source: Source, path: Path) -> bytes:
    path.write_bytes(source.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return source.read(path)


def _supervise(
    numbers: list[int], seed: int, sources: dict[str, Source], undamaged: dict[str, bytes], folder: Path
) -> int:
    """Give the numbers to a worker; record a crash or a hang as a failure and continue with a new worker."""
    folder.mkdir()
    results, started = folder / "results.jsonl", folder / "started.json"
    while numbers:
        started.unlink(missing_ok=True)
        code = _wait(fork(partial(_work, numbers, seed, sources, undamaged, folder)), started)
        done = {json.loads(line)["number"] for line in results.open()} if results.exists() else set()
        if code != 0 and (now := json.loads(started.read_text()))["number"] not in done:
            problem = "hung" if code is None else f"the process ended with {code}"
            _append(results, {**now, "verdict": "bad", "problem": problem, "seconds": 0.0})
            done.add(now["number"])
        numbers = [number for number in numbers if number not in done]
    return 0


def _wait(pid: int, started: Path) -> int | None:
    """Return the exit code of a worker; kill it, and return None, if it stays at one file for too long."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if started.exists() and time.time() - started.stat().st_mtime > HUNG:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        time.sleep(0.05)


def _work(numbers: list[int], seed: int, sources: dict[str, Source], undamaged: dict[str, bytes], folder: Path) -> int:
    warnings.simplefilter("ignore")
    marker = folder / "executed"
    for number in numbers:
        rng = np.random.default_rng([seed, number])
        name = list(sources)[rng.integers(len(sources))]
        mutation, damaged, same = mutate(sources[name].data, rng, marker)
        now = {"number": number, "file": name, "mutation": mutation}
        (folder / "started.json").write_text(json.dumps(now))
        path = folder / f"damaged.{sources[name].suffix}"
        path.write_bytes(damaged)
        begin = time.process_time()
        with limited_memory():
            result = _judge(sources[name], path, undamaged[name] if same else None)
        seconds = time.process_time() - begin
        if marker.exists():
            result = {"verdict": "bad", "problem": "executed code from the file"}
            marker.rmdir()
        elif seconds > CPU_SECONDS:
            result = {"verdict": "bad", "problem": f"took {seconds:.1f} s"}
        _append(folder / "results.jsonl", {**now, **result, "seconds": seconds})
    return 0


@contextmanager
def limited_memory() -> Iterator[None]:
    """Limit the memory that may be allocated within the context to MEMORY more bytes."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _judge(source: Source, path: Path, expected: bytes | None) -> dict[str, Any]:
    """Return the verdict: loaded (valid, and equal to the undamaged file if `expected`), refused by name, or bad."""
    try:
        content = source.read(path)
    except ValueError as error:
        if str(path) in str(error) and "\n" not in str(error):
            return {"verdict": "refused", "problem": ""}
        return {
            "verdict": "bad",
            "problem": f"refused without the name of the file, or in several lines: {error}"[:500],
        }
    except BaseException:
        return {"verdict": "bad", "problem": traceback.format_exc()[-1500:]}
    if expected is not None and content != expected:
        return {"verdict": "bad", "problem": "loaded with other content"}
    return {"verdict": "loaded", "problem": ""}


def _append(path: Path, value: dict[str, Any]) -> None:
    with path.open("a") as file:
        print(json.dumps(value), file=file, flush=True)

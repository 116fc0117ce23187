"""Many signal trials, in several processes."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path

from .children import fork
from .scenarios import import_all
from .signals import Trials


def run_signals(count: int, seed: int, jobs: int, folder: Path) -> int:
    """Make `count` trials, print a summary, and return the number of failures."""
    import_all()
    folder.mkdir()
    pids = [fork(partial(_work, range(job, count, jobs), seed, folder / f"job {job}")) for job in range(jobs)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    results = [json.loads(line) for path in folder.glob("job */trials.jsonl") for line in path.open()]
    for result in results:
        if result["problem"]:
            print(f"FAILED {result['name']}, {result['signal']} after {result['moment']} s: {result['problem']}")
    ends = Counter((result["signal"], result["code"]) for result in results)
    print(f"{len(results)} of {count} signal trials: " + ", ".join(f"{s} exit {c}: {n}" for (s, c), n in ends.items()))
    return sum(bool(result["problem"]) for result in results) + (count - len(results)) + sum(map(bool, codes))


def _work(numbers: range, seed: int, folder: Path) -> int:
    folder.mkdir()
    trials = Trials(folder)
    with (folder / "trials.jsonl").open("w") as file:
        for number in numbers:
            print(json.dumps(asdict(trials.run(number, seed))), file=file, flush=True)
    return 0

"""`python -m tests.faults --signals 200 --mutations 5000 --kills 20 --seed 0`, from the root of the repository."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # children are forked, so nothing may start threads
    os.environ[variable] = "1"

from .mutation_run import run_mutations  # noqa: E402
from .rank_kills import run_kills  # noqa: E402
from .signal_run import run_signals  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Disturb runs and damage files.")
    parser.add_argument("--signals", type=int, default=0, help="number of signal trials")
    parser.add_argument("--mutations", type=int, default=0, help="number of damaged files")
    parser.add_argument("--kills", type=int, default=0, help="number of trials in which one of several ranks is killed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    args = parser.parse_args()
    failures, begin = 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        if args.signals:
            failures += run_signals(args.signals, args.seed, args.jobs, Path(folder, "signals"))
        if args.mutations:
            failures += run_mutations(args.mutations, args.seed, args.jobs, Path(folder, "mutations"))
        if args.kills:
            failures += run_kills(args.kills, args.seed, Path(folder, "kills"))
    print(f"{failures} failures in {time.monotonic() - begin:.0f} s")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())

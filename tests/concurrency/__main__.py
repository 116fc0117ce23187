"""Repeat every method on a busy machine, and many fits in one process.

python -m tests.concurrency --repeats 50    # fit, transform, save and load while all cores are busy
python -m tests.concurrency --fits 300      # memory, threads and file descriptors stay constant
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.methods import PUBLIC

from concurrency.busy import busy_cores
from concurrency.repeats import differing_repeats
from concurrency.resources import fit_many


def repeat_all(repeats: int) -> int:
    """Print for each method what differed between the repeats, and return the number of methods that differed."""
    failed = 0
    with busy_cores(2 * (os.cpu_count() or 1)):
        for Method in PUBLIC:
            differing = differing_repeats(Method, repeats)
            failed += bool(differing)
            print(f"{Method.__name__:20} {', '.join(differing) or 'equal bytes'}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.concurrency", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=0, help="how often each method runs on a busy machine")
    parser.add_argument("--fits", type=int, default=0, help="number of fits in this process")
    args = parser.parse_args()
    if not (args.repeats or args.fits):
        parser.error("give --repeats or --fits")
    failed = repeat_all(args.repeats) if args.repeats else 0
    if args.fits:
        problems = fit_many(args.fits, report=print)
        print("\n".join(problems) or f"{args.fits} fits: memory, threads and file descriptors are constant")
        failed += len(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

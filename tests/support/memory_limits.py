"""Fit and transform under limits on the address space: each ends in a finite map or in MemoryError.

`python -m support.memory_limits` in tests/ runs every public method at 40 limits and prints those that do neither.
One process per method imports the library and forks for every limit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHILD = """
import os, resource, sys
import numpy as np
from support.methods import NEW, PUBLIC, X, brief

method = brief(next(Method for Method in PUBLIC if Method.__name__ == sys.argv[1]), n_jobs=2)

def end_within(megabytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + int(megabytes * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        method.fit(X)
        maps = [method.embedding_, *([method.transform(NEW)] if hasattr(method, "transform") else [])]
        verdict = "finite" if all(np.isfinite(Y).all() for Y in maps) else "not finite"
    except MemoryError as error:
        verdict = "MemoryError"
    assert np.ones(1000).sum() == 1000  # the interpreter still works
    print(verdict, flush=True)

for megabytes in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        end_within(float(megabytes))
        sys.exit()
    status = os.waitpid(child, 0)[1]
    if status:
        print(f"exit code {os.waitstatus_to_exitcode(status)}", flush=True)
"""
LIMITS = [0, 1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416]
LIMITS += [448, 480, 512, 544, 576, 608, 640, 672, 704, 768, 832, 896, 1024, 1536, 2048]  # MB above those in use


def verdicts(name: str, limits: list[float]) -> list[str]:
    """Return, for each limit in MB, how a fit and a transform of a method end with this much address space left."""
    folder = Path(__file__).parents[1]
    paths = os.pathsep.join([str(folder), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", CHILD, name, *map(str, limits)]
    child = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100 + 20 * len(limits))
    ends = child.stdout.splitlines()
    assert child.returncode == 0 and len(ends) == len(limits), child.stdout + child.stderr
    return ends


def main() -> int:
    from support.methods import PUBLIC

    bad = 0
    for Method in PUBLIC:
        ends = verdicts(Method.__name__, LIMITS)
        print(Method.__name__, {end: ends.count(end) for end in ends}, flush=True)
        bad += sum(end not in ("finite", "MemoryError") for end in ends)
    print(f"{bad} bad of {len(LIMITS) * len(PUBLIC)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

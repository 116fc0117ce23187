"""What a process holds: memory, threads and file descriptors."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from support.methods import PUBLIC

from concurrency.clusters import NEW, X, brief_on_clusters

WARM_UP = 2 * len(PUBLIC)  # fits after which all libraries are loaded and the allocator's pools have their size
GROWTH = 16.0  # MB of resident memory that fragmentation may add after the warm-up; chosen, it varied by 8 over 30 fits


class Resources(NamedTuple):
    """Resources of this process."""

    megabytes: float  # resident memory
    threads: int
    descriptors: int


def resources() -> Resources:
    """Return what this process holds now; only on Linux."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    threads = len(os.listdir("/proc/self/task"))
    return Resources(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, threads, len(os.listdir("/proc/self/fd")))


def fit_once(i: int) -> None:
    """Fit and transform the i-th method of the registry, in turn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        brief_on_clusters(PUBLIC[i % len(PUBLIC)]).fit(X).transform(NEW)


def fit_many(fits: int, report: Callable[[Any], None] = lambda line: None) -> list[str]:
    """Fit this many methods after the warm-up; return what grew, in words."""
    for i in range(WARM_UP):
        fit_once(i)
    first = last = resources()
    report(f"after the warm-up {first}")
    for i in range(fits):
        fit_once(i)
        if (i + 1) % max(1, fits // 6) == 0:
            last = resources()
            report(f"after {i + 1} fits {last}")
    problems = []
    if last.megabytes > first.megabytes + GROWTH:
        problems.append(f"memory grew from {first.megabytes:.0f} to {last.megabytes:.0f} MB")
    if last.threads > first.threads:
        problems.append(f"threads grew from {first.threads} to {last.threads}")
    if last.descriptors > first.descriptors:
        problems.append(f"file descriptors grew from {first.descriptors} to {last.descriptors}")
    return problems

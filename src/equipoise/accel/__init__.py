"""Compute the maps of programs that use sklearn.manifold, umap-learn or openTSNE with Equipoise, without changing them.

    python -m equipoise.accel script.py

or, in a program or notebook, `equipoise.accel.install()`. The classes stay those of the other library; a call whose
parameters do not map is answered by the original. docs/accel.md is the guide.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from .answers import ANSWERS
from .calls import RECORD, Calls
from .patches import Patches

__all__ = ["Calls", "accelerated", "calls", "install", "installed", "report", "uninstall"]

_patches = Patches([answer.patch(RECORD) for answer in ANSWERS])


def install(report_at_exit: bool = False) -> None:
    """Answer calls from now on, also of libraries that are imported later.

    Parameters
    ----------
    report_at_exit : bool, default=False
        Print the table of `report` when the program ends.
    """
    if not _patches.applied:
        RECORD.clear()
        _patches.apply()
    if report_at_exit:
        atexit.unregister(report)
        atexit.register(report)


def uninstall() -> None:
    """Put the original functions back. Fitted objects keep working, and `report` still has the calls."""
    _patches.undo()
    atexit.unregister(report)


def installed() -> bool:
    """Return whether calls are answered by Equipoise."""
    return _patches.applied


@contextmanager
def accelerated() -> Iterator[None]:
    """Answer calls within a `with` block; an installation that was there before stays."""
    before = installed()
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


def calls() -> list[Calls]:
    """Return the calls since `install`, grouped by method, by what answered and why."""
    return RECORD.rows()


def report(file: TextIO | None = None) -> None:
    """Print the table of the calls since `install`, to standard error unless `file` is given."""
    print(RECORD.table(), file=sys.stderr if file is None else file)

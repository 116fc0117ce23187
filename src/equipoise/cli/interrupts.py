"""Handles Ctrl-C and SIGTERM on the command line."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED, TERMINATED = 130, 143  # shell convention: 128 + SIGINT, 128 + SIGTERM


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM; it is a KeyboardInterrupt, so that SIGTERM ends a run in the same way as Ctrl-C."""


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code after an interrupt: 130 after Ctrl-C, 143 after SIGTERM."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED


def describe(interrupt: KeyboardInterrupt) -> str:
    """Return "interrupted" after Ctrl-C, "terminated" after SIGTERM."""
    return "terminated" if isinstance(interrupt, Terminated) else "interrupted"


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Raise Terminated on SIGTERM within the context.

    Do nothing outside the main thread, or if the calling program handles SIGTERM itself.
    """
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: Any) -> NoReturn:
    raise Terminated

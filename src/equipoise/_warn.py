"""Issue warnings that name a line of the user's code instead of a line inside the package."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import sklearn

# Pipelines, grid searches and `set_output` put frames of scikit-learn between the user and the package.
INTERNAL = tuple(str(Path(name).parent) + os.sep for name in (__file__, sklearn.__file__))
_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


class UnfinishedWarning(UserWarning):
    """A map whose optimisation ended while its loss was still decreasing; the message says by how much."""


class LeftOutWarning(UserWarning):
    """Columns that the metric "mixed" does not compare; the message names them and says why."""


@contextmanager
def collecting() -> Iterator[list[str]]:
    """Yield a list to which `warn` appends messages instead of issuing warnings.

    This concerns only the thread that enters the context, unlike `warnings.catch_warnings`, which acts on the process.
    """
    messages: list[str] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that names the line of the user's code from which the package was called.

    This is the line of the innermost stack frame outside the package and scikit-learn. If there is no such frame, the
    warning names the line of the outermost frame. Within `collecting`, the message is collected instead.
    """
    if (messages := _collected.get()) is not None:
        messages.append(message)
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INTERNAL):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "unknown"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )

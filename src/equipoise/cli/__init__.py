"""Runs the commands of the command line, such as `equipoise embed digits`."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .. import progress
from .interrupts import describe, exit_code, raise_on_sigterm
from .method_options import METHODS
from .parser import parse

__all__ = ["METHODS", "main"]

BAD_INPUT, CLOSED_PIPE = 2, 141  # 141 is 128 + SIGPIPE, by shell convention
EXPECTED = (ValueError, TypeError, OSError, EOFError, ArithmeticError, RuntimeError, ImportError, MemoryError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of the command line.

    SIGTERM interrupts the command in the same way as Ctrl-C.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after `equipoise`; by default `sys.argv[1:]`.

    Returns
    -------
    code : int
        Exit code: 0 on success, 2 after an error, 130 after Ctrl-C, 141 if standard output was closed, 143 after
        SIGTERM.

    Raises
    ------
    SystemExit
        With code 2 if the arguments are invalid, and with code 0 after --help and --version.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        with raise_on_sigterm():
            _open_closed_streams()
            try:
                return _run(words)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
    except BrokenPipeError:
        _discard_unwritable()
        return CLOSED_PIPE
    except EXPECTED as error:
        _discard_unwritable()
        _print_error(error, debug="--debug" in words)
        return BAD_INPUT
    except KeyboardInterrupt as interrupt:
        _discard_unwritable()
        _print_last(f"equipoise: {describe(interrupt)} {interrupt}".rstrip())
        return exit_code(interrupt)


def _run(words: Sequence[str]) -> int:
    args = parse(words)
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        return int(args.run(args))


def _open_closed_streams() -> None:
    """Open the null device in place of standard streams that were closed before Python started."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open until the process ends


def _discard_unwritable() -> None:
    """If a standard stream cannot be flushed, redirect it to the null device; else Python would fail again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


def _print_last(line: str) -> None:
    """Print the final message of a failed or interrupted command to standard error, if that can be written."""
    with suppress(OSError):
        print(line, file=sys.stderr)
    _discard_unwritable()


def _print_warning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
    progress.end_stage()
    print(f"equipoise: warning: {_one_line(message)}", file=sys.stderr)


def _print_error(error: BaseException, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    text = _one_line(error) or type(error).__name__
    says_so = "not enough memory" in text or "out of memory" in text
    prefix = "not enough memory: " if isinstance(error, MemoryError) and not says_so else ""
    _print_last(f"equipoise: error: {prefix}{text}")


def _one_line(message: object) -> str:
    return " ".join(str(message).split())

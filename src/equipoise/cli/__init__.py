"""The command line, such as `equipoise embed digits`."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from .. import progress
from .method_options import METHODS
from .parser import parse

__all__ = ["METHODS", "main"]

BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 2, 130, 141  # shell convention: 128 + SIGINT, 128 + SIGPIPE
EXPECTED = (ValueError, TypeError, OSError, EOFError, ArithmeticError, RuntimeError, ImportError, MemoryError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; by default `sys.argv[1:]`.

    Returns
    -------
    code : int
        Exit code: 0, 2 for bad input, 130 after Ctrl-C, 141 if standard output was closed.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    args = parse(words)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            code = int(args.run(args))
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        # Otherwise flushing the rest of the buffer fails again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except EXPECTED as error:
        _print_error(error, debug=hasattr(args, "debug"))
        return BAD_INPUT
    except KeyboardInterrupt as interrupt:
        print(f"equipoise: interrupted {interrupt}".rstrip(), file=sys.stderr)
        return INTERRUPTED


def _print_warning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
    progress.end_stage()
    print(f"equipoise: warning: {_one_line(message)}", file=sys.stderr)


def _print_error(error: BaseException, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    prefix = "not enough memory: " if isinstance(error, MemoryError) else ""
    print(f"equipoise: error: {prefix}{_one_line(error) or type(error).__name__}", file=sys.stderr)


def _one_line(message: object) -> str:
    return " ".join(str(message).split())

"""Run a script or a module as `python` does, with its calls answered by Equipoise, and print what was answered."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import NoReturn

from . import install

USAGE = """usage: python -m equipoise.accel script.py [arguments]
       python -m equipoise.accel -m module [arguments]

Run a Python script or module; sklearn.manifold, umap-learn and openTSNE are answered by Equipoise where their
parameters map. At exit, a table on standard error says what was answered by Equipoise and what was not, and why."""


def main() -> None:
    """Run the script or module named by the arguments of the command line."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    if arguments[0] == "-m":
        if len(arguments) == 1:
            print(f"{USAGE}\n\nequipoise.accel: -m needs the name of a module", file=sys.stderr)
            sys.exit(2)
        sys.argv = arguments[1:]
        install(report_at_exit=True)
        _run(lambda: runpy.run_module(arguments[1], run_name="__main__", alter_sys=True))
    elif arguments[0].startswith("-"):
        print(f"{USAGE}\n\nequipoise.accel: unknown option {arguments[0]}", file=sys.stderr)
        sys.exit(2)
    else:
        script = Path(arguments[0])
        try:
            source = script.read_bytes()
        except OSError as error:
            print(f"equipoise.accel: can't open {arguments[0]!r}: {error.strerror}", file=sys.stderr)
            sys.exit(2)
        sys.argv = arguments
        if not getattr(sys.flags, "safe_path", False):  # Python 3.11
            sys.path[0] = str(script.resolve().parent)
        install(report_at_exit=True)
        _run(lambda: run_script(arguments[0], source))


def run_script(path: str, source: bytes) -> None:
    """Execute a script as the module `__main__`, which stays in place until the interpreter ends."""
    module = ModuleType("__main__")
    vars(module).update(__file__=path, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = module
    exec(compile(source, path, "exec", dont_inherit=True), vars(module))


def _run(program: Callable[[], object]) -> None:
    """Run a program; report an exception as Python does, without the frames of this file."""
    try:
        program()
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _own_frames(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        _exit(error)


def _own_frames(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the first frame of the program on."""
    skipped = {__file__, runpy.__file__, "<frozen runpy>"}
    while tb is not None and tb.tb_frame.f_code.co_filename in skipped:
        tb = tb.tb_next
    return tb


def _exit(error: BaseException) -> NoReturn:
    sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)

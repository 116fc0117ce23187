"""Verdicts: finite, clear error, not built, or bad."""

from __future__ import annotations

import dis
import traceback
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from scipy import sparse

import equipoise

from .commands import BadOutput, ClearLine
from .targets import run_case
from .values import NotBuilt, OwnError

FINITE, CLEAR, NOT_BUILT, BAD = "finite", "clear error", "not built", "bad"
OURS = str(Path(equipoise.__file__).resolve().parent)
# Errors that scikit-learn's conventions require of every estimator, with its words, and errors of the user's functions.
ALLOWED_FILES = ("sklearn/utils/validation.py", "sklearn/utils/_param_validation.py", "sklearn/base.py")
PROGRAMMING = (
    IndexError, KeyError, AttributeError, ZeroDivisionError, OverflowError, AssertionError,
    NameError, RecursionError, np.linalg.LinAlgError, NotImplementedError, StopIteration,
)  # fmt: skip


def judge(case: dict[str, Any]) -> dict[str, Any]:
    """Run a case and return its verdict, with a cause and a traceback if it is bad."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = check_results(run_case(case))
        except NotBuilt as error:
            found = {"verdict": NOT_BUILT, "cause": str(error)[:200]}
        except BadOutput as error:
            found = {"verdict": BAD, "cause": f"command: {error}"[:300], "traceback": str(error)}
        except ClearLine:
            found = {"verdict": CLEAR, "error": "command line"}
        except Exception as error:
            found = judge_error(error)
    numeric = {str(w.message)[:100] for w in caught if issubclass(w.category, RuntimeWarning)}
    return found | ({"warnings": sorted(numeric)} if numeric else {})


def check_results(results: list[tuple[str, Any, Any]]) -> dict[str, Any]:
    """Return the verdict of results: finite, or bad with the name of the first that is not or has a wrong shape."""
    for name, value, shape in results:
        if isinstance(value, str):
            continue
        values = _as_array(value)
        if shape is not None and values.shape != tuple(shape):
            return {"verdict": BAD, "cause": f"{name} has shape {values.shape}, expected {tuple(shape)}"}
        if values.dtype.kind not in "biuf":
            return {"verdict": BAD, "cause": f"{name} has dtype {values.dtype}"}
        if not np.isfinite(values).all():
            return {"verdict": BAD, "cause": f"{name} is not finite"}
    return {"verdict": FINITE}


def _as_array(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    elif hasattr(value, "get") and not isinstance(value, dict):
        value = value.get()
    return np.asarray(value.data if sparse.issparse(value) else value)


def judge_error(error: Exception) -> dict[str, Any]:
    """Return the verdict of an exception: clear if our code raised it on purpose, otherwise bad."""
    last = _innermost(error.__traceback__)
    if isinstance(error, OwnError) or is_clear(error, last):
        return {"verdict": CLEAR, "error": type(error).__name__}
    return {
        "verdict": BAD,
        "cause": f"{type(error).__name__} at {_our_place(error.__traceback__)}: {_generic(str(error))}",
        "traceback": "".join(traceback.format_exception(error))[-4000:],
    }


def is_clear(error: Exception, last: TracebackType) -> bool:
    """Return whether a `raise` in our code, or a check of scikit-learn, made this error."""
    if isinstance(error, PROGRAMMING):
        return False
    file = last.tb_frame.f_code.co_filename.replace("\\", "/")
    if file.endswith(ALLOWED_FILES):
        return _is_raise(last)
    if not file.startswith(OURS):
        return False
    return _is_raise(last) or _in_core(error, last)


def _is_raise(last: TracebackType) -> bool:
    """Return whether the frame ended in a `raise` statement rather than in a call of compiled code."""
    return dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def _in_core(error: Exception, last: TracebackType) -> bool:
    """Return whether the compiled core raised the error with a message of its own."""
    place = traceback.extract_tb(last)[-1]
    lines = Path(place.filename).read_text(encoding="utf-8").splitlines()
    source = "\n".join(lines[(place.lineno or 1) - 1 : getattr(place, "end_lineno", place.lineno)])
    return "_core." in source and "incompatible function arguments" not in str(error)


def _innermost(place: TracebackType | None) -> TracebackType:
    assert place is not None
    while place.tb_next is not None:
        place = place.tb_next
    return place


def _our_place(place: TracebackType | None) -> str:
    """Return file and line of the innermost frame in our code, and the file of the innermost frame of all."""
    frames = traceback.extract_tb(place)
    ours = [frame for frame in frames if frame.filename.startswith(OURS)]
    where = f"{ours[-1].filename[len(OURS) + 1 :]}:{ours[-1].lineno}" if ours else "no frame of ours"
    last = frames[-1]
    return (
        where if ours and last is ours[-1] else f"{where} in {'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}"
    )


def _generic(message: str) -> str:
    """Return the first line of a message without its numbers, to group cases."""
    line = next(iter(message.splitlines()), "")
    return "".join("0" if c.isdigit() else c for c in line)[:120]

"""Warnings that point at the line of the user's program, not into the package."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import sklearn

# scikit-learn stands between the user and the package in pipelines, searches and behind `set_output`.
INSIDE = tuple(str(Path(name).parent) + os.sep for name in (__file__, sklearn.__file__))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line of the call stack that is outside the package; at the outermost if none is."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "unknown"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )

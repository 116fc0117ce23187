"""Packages that only some files need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(package: str, extra: str, purpose: str) -> Any:
    """Return a package that is not installed with equipoise, or say which extra brings it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(f'{purpose} needs {package}: pip install "equipoise[{extra}]"') from error

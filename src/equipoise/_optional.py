"""Import optional dependencies."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_optional(package: str, extra: str, purpose: str) -> Any:
    """Import and return an optional package.

    Parameters
    ----------
    package : str
        Name of the module to import.
    extra : str
        Extra of equipoise that installs it.
    purpose : str
        What needs the package; begins the error message.

    Raises
    ------
    ImportError
        If the package cannot be imported; the message says how to install it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(f'{purpose} needs {package}: pip install "equipoise[{extra}]"') from error

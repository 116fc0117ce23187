"""Import optional dependencies."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

NO_MEMORY = ("failed to map segment", "annot allocate memory")  # in errors of the dynamic linker


def import_optional(package: str, extra: str, purpose: str) -> Any:
    """Import and return an optional package.

    Parameters
    ----------
    package : str
        Name of the module to import.
    extra : str
        Name of the extra of equipoise that installs the package.
    purpose : str
        What needs the package, such as "reading H5AD"; the error message begins with it.

    Raises
    ------
    ImportError
        If the package is not installed (the message gives the command that installs it), or if it is installed but
        cannot be imported (the message gives the reason).
    MemoryError
        If a library of the package does not fit into the address space that this process has left.
    """
    try:
        return import_module(package)
    except ImportError as error:
        if find_spec(package.partition(".")[0]) is None:
            raise ImportError(f'{purpose} needs {package}: pip install "equipoise[{extra}]"') from error
        if any(words in str(error) for words in NO_MEMORY):
            raise MemoryError(
                f"{purpose} needs {package}, which does not fit into memory ({error}); free memory, or raise the"
                " limit set by ulimit -v"
            ) from error
        raise ImportError(f"{purpose} needs {package}, which is installed but cannot be imported: {error}") from error

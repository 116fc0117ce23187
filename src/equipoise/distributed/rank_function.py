"""The function that a rank runs."""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .current import current_group
from .group import Group, SingleProcess
from .rank_error import UNKNOWN, RankError, describe_error


def execute(function: Callable[..., Any], arguments: Sequence[Any], timeout: float) -> Any:
    """Return `function(group, *arguments)` with the group of this process; all errors are raised as `RankError`."""
    group: Group = SingleProcess(timeout)
    rank = int(os.environ.get("RANK", 0))
    try:
        with current_group(timeout=timeout) as group, group.stage(UNKNOWN):
            return function(group, *arguments)
    except RankError:
        raise
    except (Exception, SystemExit) as error:
        raise group.failure or RankError(rank, socket.gethostname(), "start", describe_error(error)) from error


def load_function(path: str) -> Callable[..., Any]:
    """Return the function at "module:function" or "file.py:function"."""
    source, colon, name = path.rpartition(":")
    if not (colon and source and name):
        raise ValueError(f"{path!r} names no function; write module:function or file.py:function")
    if source.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(source).stem, source)
        if spec is None or spec.loader is None or not Path(source).is_file():
            raise FileNotFoundError(f"no file {source}, from which {name} was to be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(source)
    function = getattr(module, name, None)
    if not callable(function):
        raise AttributeError(f"{source} has no function {name!r}")
    return function

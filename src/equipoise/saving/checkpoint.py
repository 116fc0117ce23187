"""Checkpoints: the complete state of a run in a file, from which it resumes to the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tag_of
from .._warn import warn
from ..arrays.namespace import is_tensor, to_numpy
from . import archive
from .archive import Refused

FORMAT = 1  # version of the file format


@dataclass(frozen=True)
class Checkpoint:
    """Save the state of a fit to a file, to resume it after an interruption; one of the `callbacks` of a method.

    The file is replaced atomically every `every` iterations, so that it is complete even after Ctrl-C or a power
    failure. With `resume` the fit continues from the file, if it exists, and ends with the same bytes as an
    uninterrupted run. Affinities and the initial map are recomputed and must agree: different data, parameters,
    `random_state` or version of equipoise raise ValueError. `n_jobs`, `verbose` and other callbacks may differ. For
    10,000 rows or more, the neighbours are saved once in a second file, `path`.neighbors, with 12 bytes each.

    Parameters
    ----------
    path : str or Path
        The file; an existing one is replaced.
    every : int, default=50
        Number of iterations between writes.
    resume : bool, default=False
        Continue from the file. If it does not exist yet, warn and start from the beginning.

    Examples
    --------
    >>> eq.TSNE(random_state=0, callbacks=[eq.Checkpoint("run.eqc")]).fit(X)               # interrupted
    >>> eq.TSNE(random_state=0, callbacks=[eq.Checkpoint("run.eqc", resume=True)]).fit(X)  # continues
    """

    path: str | Path
    every: int = 50
    resume: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.every, int | np.integer) and self.every >= 1):
            raise ValueError(f"every must be an integer >= 1, got {self.every!r}")
        folder = Path(self.path).resolve().parent
        if not folder.is_dir():
            raise ValueError(f"the checkpoint's folder {str(folder)!r} does not exist; create it first")

    def check(self) -> None:
        """Raise if the file to resume from is not a checkpoint of this version; the run itself is compared later."""
        if self.resume and Path(self.path).exists():
            archive.read(self.path, _accept_version)


class RunCheckpoints:
    """The checkpoints of one run.

    Parameters
    ----------
    checkpoints : sequence of Checkpoint
    description : dict
        Everything that determines the result of the run, as plain values or fingerprints.
    state : callable
        Returns the state needed to resume from the current iteration, in values that archive.py can write.
    """

    def __init__(self, checkpoints: Sequence[Checkpoint], description: dict[str, Any], state: Callable[[], Any]):
        self.checkpoints, self.state = checkpoints, state
        version = archive.version()
        self._about: dict[str, Any] = {"kind": "checkpoint", "format": FORMAT, "equipoise": version, "run": description}

    def load(self) -> Any:
        """Return the saved state to resume from; None to start from the beginning."""
        for checkpoint in self.checkpoints:
            if not checkpoint.resume:
                continue
            if Path(checkpoint.path).exists():
                return archive.read(checkpoint.path, self._accept)
            warn(f"there is no checkpoint {str(checkpoint.path)!r} yet; starting from the beginning")
        return None

    def next_due(self, iteration: int) -> int:
        """Return the first iteration from `iteration` on at which a file is written."""
        return min(-(-iteration // checkpoint.every) * checkpoint.every for checkpoint in self.checkpoints)

    def save_if_due(self, iteration: int) -> None:
        """Write the state to each checkpoint that is due after `iteration` iterations."""
        for checkpoint in self.checkpoints:
            if iteration % checkpoint.every == 0:
                archive.write(checkpoint.path, self._about, self.state())

    def _accept(self, path: str | Path, about: dict[str, Any]) -> None:
        """Raise unless a file is a checkpoint of the same run."""
        _accept_version(path, about)
        current, saved = self._about["run"], about.get("run")
        if not isinstance(saved, dict):
            raise ValueError("it does not describe its run")
        different = [name for name in current if current[name] != saved.get(name)]
        if different:
            what = f"{', '.join(different)} {'differs' if len(different) == 1 else 'differ'}"
            raise Refused(
                f"{path} is a checkpoint of another run: {what}; use the data, parameters and integer"
                " random_state of that run, or start again without resume"
            )


def _accept_version(path: str | Path, about: dict[str, Any]) -> None:
    """Raise unless a file is a checkpoint of this version."""
    if about.get("kind") != "checkpoint":
        raise Refused(f"{path} is not a checkpoint")
    if (about.get("format"), about.get("equipoise")) != (FORMAT, archive.version()):
        raise Refused(
            f"{path} is a checkpoint of equipoise {about.get('equipoise')}, but this is {archive.version()}; resuming"
            " requires the same version; install that version, or start again without resume"
        )


def fingerprint(*values: Any) -> str:
    """Return a hash, 32 hexadecimal digits, of numbers, strings, arrays, matrices and objects composed of these."""
    result = hashlib.blake2b(digest_size=16)
    for value in values:
        _update(value, result.update)
    return result.hexdigest()


def _update(value: Any, update: Callable[[Any], None]) -> None:
    update(type(value).__name__.encode() + b"(")
    if value is None or isinstance(value, str | bool | int | float | np.generic):
        update(repr(value).encode())
    elif isinstance(value, np.ndarray):
        update(f"{value.dtype} {value.shape}".encode())
        update(np.ascontiguousarray(value).data if value.size else b"")
    elif is_tensor(value):
        _update(to_numpy(value), update)
    elif sparse.issparse(value):
        _update([value.shape, value.data[: value.nnz], value.indices[: value.nnz], value.indptr], update)
    elif isinstance(value, list | tuple):
        for item in value:
            _update(item, update)
    elif isinstance(value, dict):
        _update(sorted(value.items()), update)
    elif isinstance(value, FunctionType | BuiltinFunctionType | type):  # hash only the name
        tag = tag_of(value)
        update((f"{value.__module__}.{value.__qualname__}" if tag is None else f"equipoise.{tag}").encode())
    else:
        computed = archive.cached_names(type(value))
        for name, item in sorted(vars(value).items()):
            if name not in computed | {"n_threads"}:
                _update([name, item], update)
    update(b")")

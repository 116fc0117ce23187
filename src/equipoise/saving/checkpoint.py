"""Save the state of a run to files; a resumed run ends with the same map, byte for byte, as an uninterrupted one."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from scipy import sparse

from .._atomic import remove_partial_files
from .._file_locks import Locked, LockFile
from .._tags import tag_of
from .._warn import warn
from ..arrays.namespace import is_tensor, to_numpy
from . import archive
from .archive import Refused

FORMAT = 1  # version of the file format; incremented when a state can no longer be resumed

_held = threading.local()  # `paths`: the checkpoints that this thread has locked


@dataclass(frozen=True)
class Checkpoint:
    """Save the state of a fit to a file, from which the fit can be resumed; for the `callbacks` of a method.

    The file is replaced atomically every `every` iterations, so that it is complete even after Ctrl-C or a power
    failure. With `resume` the fit continues from the file, if it exists. The resumed fit ends with the same map and
    losses as an uninterrupted one, byte for byte. Affinities and the initial map are not saved but recomputed, and must
    equal those of the interrupted fit: other data, parameters or `random_state` raise ValueError. `n_jobs`,
    `verbose` and other callbacks can be changed. The neighbours of a dense table of 10,000 rows or more, if found on
    the CPU, are saved once in a second file, `path`.neighbors, which takes 12 bytes per neighbour.

    During the fit the file `path`.lock is locked; a second fit with the same checkpoint raises RuntimeError.

    Parameters
    ----------
    path : str or Path
        The file to write; an existing file is replaced.
    every : int, default=50
        Number of iterations between writes.
    resume : bool, default=False
        Whether to continue from the file. If it does not exist yet, warn and start from the beginning.

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
            raise ValueError(
                f"every={self.every!r} is not an integer >= 1; pass the number of iterations between two writes"
            )
        folder = Path(self.path).resolve().parent
        if not folder.is_dir():
            raise ValueError(f"the checkpoint's folder {str(folder)!r} does not exist; create it first")

    def check(self) -> None:
        """Raise if the file to resume from exists but is not a checkpoint of this format.

        Whether the checkpoint belongs to the same run is checked later, by `RunCheckpoints`.
        """
        if self.resume and Path(self.path).exists():
            archive.read(self.path, _accept_format)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the checkpoint within the context; raise RuntimeError if another process or thread uses it."""
        path = Path(self.path).resolve()
        held: set[Path] = vars(_held).setdefault("paths", set())
        if path in held:  # by `fit`, which calls `optimize`
            yield
            return
        try:
            lock = LockFile(Path(f"{path}.lock"))
        except Locked as error:
            raise RuntimeError(
                f"the checkpoint {str(self.path)!r} is in use by {error}; wait for that run to end, or choose another"
                " file"
            ) from None
        held.add(path)
        try:
            if not lock.supported:
                warn(
                    f"the file system of {str(self.path)!r} does not support locks; make sure that no other run uses"
                    " this checkpoint"
                )
            remove_partial_files(path.parent)
            yield
        finally:
            held.remove(path)
            lock.release()


@contextmanager
def locked(checkpoints: Sequence[Checkpoint]) -> Iterator[None]:
    """Lock several checkpoints within the context."""
    with ExitStack() as stack:
        for checkpoint in checkpoints:
            stack.enter_context(checkpoint.locked())
        yield


class RunCheckpoints:
    """Writes the checkpoints of one run, and resumes the run from them.

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

    def resume(self, restore: Callable[[Any], None]) -> None:
        """Read the first existing file among the checkpoints with `resume`, and call `restore` with its state."""
        for checkpoint in self.checkpoints:
            if not checkpoint.resume:
                continue
            if not Path(checkpoint.path).exists():
                warn(f"there is no checkpoint {str(checkpoint.path)!r} yet; starting from the beginning")
                continue
            saved = archive.read(checkpoint.path, self._accept)
            try:
                restore(saved)
            except MemoryError:
                raise
            except Exception as error:  # whatever a state of the wrong form leads to
                reason = " ".join(str(error).split()) or type(error).__name__
                raise ValueError(f"{checkpoint.path} is damaged: {reason}; start again with resume=False") from error
            return

    def next_due(self, iteration: int) -> int:
        """Return the first iteration, not before `iteration`, at which a file is written."""
        return min(-(-iteration // checkpoint.every) * checkpoint.every for checkpoint in self.checkpoints)

    def save_if_due(self, iteration: int) -> None:
        """Write the state to each checkpoint that is due after `iteration` iterations."""
        if any(iteration % checkpoint.every == 0 for checkpoint in self.checkpoints):
            self._write_if_due(iteration, self.state())

    def _write_if_due(self, iteration: int, state: Any) -> None:
        for checkpoint in self.checkpoints:
            if iteration % checkpoint.every == 0:
                archive.write(checkpoint.path, self._about, state)

    def _accept(self, path: str | Path, about: dict[str, Any]) -> None:
        """Raise unless a file is a checkpoint of the same run."""
        _accept_format(path, about)
        current, saved = self._about["run"], about.get("run")
        if not isinstance(saved, dict):
            raise ValueError("the file does not describe the run that wrote it")
        different = [name for name in current if current[name] != saved.get(name)]
        if different:
            near = neighbors_path(path)
            delete = f", or delete {near} if it is damaged" if "affinities" in different and near.exists() else ""
            raise Refused(
                f"{path} is a checkpoint of another run: it differs in {', '.join(different)}; use the data, parameters"
                f" and integer random_state of that run{delete}, or start again with resume=False"
            )


def neighbors_path(checkpoint: str | Path) -> Path:
    """Return the path of the file in which the neighbours of a run are saved, next to its checkpoint."""
    return Path(f"{checkpoint}.neighbors")


def _accept_format(path: str | Path, about: dict[str, Any]) -> None:
    """Raise unless a file is a checkpoint of this format."""
    if about.get("kind") != "checkpoint":
        raise Refused(f"{path} is not a checkpoint; choose a file written by Checkpoint")
    if about.get("format") != FORMAT:
        raise Refused(
            f"{path} is a checkpoint of equipoise {about.get('equipoise')} in format {about.get('format')}, but this is"
            f" equipoise {archive.version()}, which resumes format {FORMAT}; install"
            f" equipoise {about.get('equipoise')}, or start again with resume=False"
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

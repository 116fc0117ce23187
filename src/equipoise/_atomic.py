"""Write files atomically: a reader sees the old content or the complete new content, never a part."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ._file_locks import is_at, remove_abandoned, try_lock

MAX_NAME = 48  # characters of a file's name that its temporary file repeats: at most 192 of the 255 bytes of a name
PARTIAL = re.compile(r"\..+\.equipoise-\d+-[0-9a-f]{8}\.part")

_swept: set[Path] = set()  # folders from which this process has removed abandoned files


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file for writing; rename it to `path` on success, delete it on failure.

    A process that is killed leaves its temporary file behind, `.NAME.equipoise-PID-RANDOM.part`. The first write of
    another process to the same folder deletes that temporary file. If `path` is a symbolic link, its target is
    replaced. The new file has the permissions of the file that it replaces. Devices and pipes are written directly,
    without a temporary file.

    Parameters
    ----------
    path : str or path-like
        Destination. Its folder must exist.

    Yields
    ------
    file : binary file

    Raises
    ------
    OSError
        If the file cannot be written; the error names `path`, or the folder of `path` if the folder does not exist.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))
    if not (path.exists() or target.parent.is_dir()):
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist; create it or choose another")
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with open(path, "wb") as file:
                yield file
            return
        remove_partial_files(target.parent)
        with _partial_file(target) as file:
            yield file
    except OSError as error:
        if error.errno is None or (error.filename is not None and not PARTIAL.fullmatch(Path(error.filename).name)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def _partial_file(target: Path) -> Iterator[BinaryIO]:
    partial, file = _open_locked(target)
    try:
        with file:
            with suppress(OSError):  # there is no file yet, or the file system has no permissions
                os.chmod(partial, stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":  # while the file is locked, so that no other process deletes it
                os.replace(partial, target)
        if sys.platform == "win32":
            os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _open_locked(target: Path) -> tuple[Path, BinaryIO]:
    """Create a temporary file for `target` and lock it, to show other processes that it is in use."""
    while True:
        name = f".{target.name[:MAX_NAME]}.equipoise-{os.getpid()}-{secrets.token_hex(4)}.part"
        partial = target.with_name(name)
        file = open(partial, "xb")  # noqa: SIM115  # closed by the caller
        locked = try_lock(file.fileno())
        if locked is None or (locked and is_at(partial, file.fileno())):
            return partial, file
        file.close()
        partial.unlink(missing_ok=True)  # another process saw the file before it was locked


def remove_partial_files(folder: Path) -> None:
    """Delete the temporary files of processes that ended while writing to a folder.

    Only the first call in a process for a folder does this; later calls do nothing.
    """
    if folder in _swept:
        return
    _swept.add(folder)
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if PARTIAL.fullmatch(entry.name):
                remove_abandoned(Path(entry.path))

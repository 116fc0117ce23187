"""Creates the temporary folder of a studio, and deletes the folders left by studios that were killed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from ..._file_locks import Locked, LockFile, remove_abandoned

PREFIX = "equipoise-studio-"
LOCK = ".lock"


class TemporaryFolder:
    """A new, locked folder for uploads, deleted together with this object.

    Attributes
    ----------
    path : Path
        The folder.
    delete : callable
        Deletes the folder now.
    """

    def __init__(self) -> None:
        _remove_abandoned_folders()
        outer, lock = _make_locked_folder()
        self.delete = weakref.finalize(self, _delete, outer, lock)
        self.path = outer / "files"
        self.path.mkdir()


def _make_locked_folder() -> tuple[Path, LockFile]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            return path, LockFile(path / LOCK)
        except (FileNotFoundError, Locked):  # another studio saw the folder before it was locked, and deletes it
            continue


def _delete(path: Path, lock: LockFile) -> None:
    shutil.rmtree(path, ignore_errors=True)
    lock.release()
    shutil.rmtree(path, ignore_errors=True)  # Windows cannot delete the lock file while it is open


def _remove_abandoned_folders() -> None:
    """Delete the temporary folders left behind by studios of this user that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            if own and stat.S_ISDIR(status.st_mode):
                remove_abandoned(folder / LOCK, lambda lock: shutil.rmtree(lock.parent, ignore_errors=True))
                folder.rmdir()  # fails unless the folder is empty: its studio ended before locking it

"""File locks, which the operating system releases when the process that holds them ends, for whatever reason."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WINDOWS_OFFSET = 2**30  # the locked byte on Windows, beyond the text of a lock file, which stays readable
NOTE = 200  # maximum characters read from a lock file


def try_lock(file: int) -> bool | None:
    """Lock an open file without waiting.

    Parameters
    ----------
    file : int
        File descriptor, open for writing. Closing it releases the lock.

    Returns
    -------
    locked : bool or None
        True if the file is now locked, False if it was locked already; None if the file system does not support locks.
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, WINDOWS_OFFSET, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(file, 0, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return None
    return True


def open_regular(path: Path) -> int | None:
    """Open a file for reading and writing and return its descriptor; None if it is not regular or cannot be opened."""
    with suppress(OSError):
        if stat.S_ISREG(path.lstat().st_mode):
            return os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    return None


def is_at(path: Path, file: int) -> bool:
    """Return whether `path` still refers to the open file, which can have been renamed or deleted meanwhile."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def remove_abandoned(path: Path, remove: Callable[[Path], object] = Path.unlink) -> None:
    """Call `remove(path)`, which deletes the file by default, if no process holds the lock of the file.

    Nothing is removed if the file is not a regular one or its file system does not support locks. An OSError raised by
    `remove` is ignored.
    """
    file = open_regular(path)
    if file is None:
        return
    try:
        if try_lock(file) and is_at(path, file):
            if sys.platform == "win32":  # Windows cannot delete an open file
                os.close(file)
                file = -1
            with suppress(OSError):
                remove(path)
    finally:
        if file >= 0:
            os.close(file)


class LockFile:
    """Creates a file and locks it until `release` is called; the text of the file names this process and its host.

    Parameters
    ----------
    path : Path
        Created if necessary, and deleted by `release`.

    Attributes
    ----------
    supported : bool
        Whether the file system supports locks; if not, the file is created but not locked.

    Raises
    ------
    Locked
        If another process, or another `LockFile` of this process, holds the lock.
    OSError
        If the file cannot be written; it is then neither locked nor left behind.
    """

    def __init__(self, path: Path):
        self.path = path
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            locked = try_lock(file)
            if locked is False:
                owner = os.read(file, NOTE).decode(errors="replace").strip()
                os.close(file)
                raise Locked(owner or "another process")
            if locked is None or is_at(path, file):
                break
            os.close(file)  # its owner has deleted it in the meantime
        self._file, self.supported = file, locked is True
        try:
            os.ftruncate(file, 0)
            os.write(file, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        except OSError as error:  # such as a full disk
            self.release()
            raise OSError(error.errno, error.strerror, str(path)) from error
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Delete the file and release its lock."""
        if sys.platform == "win32":
            os.close(self._file)
        with suppress(OSError):  # on Windows another process may have opened it since
            self.path.unlink()
        if sys.platform != "win32":
            os.close(self._file)


class Locked(RuntimeError):
    """Raised if a file is locked; the message is the owner of the lock, such as "process 12 on localhost"."""

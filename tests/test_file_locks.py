"""Locks that end with their process."""

import errno
import os
import subprocess
import sys

import pytest

from equipoise._file_locks import Locked, LockFile, remove_abandoned

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX locks")

HOLD = """
import pathlib, sys, time
from equipoise._file_locks import LockFile
lock = LockFile(pathlib.Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(60)
"""


def test_lock_is_exclusive_and_its_file_is_deleted(tmp_path):
    path = tmp_path / "run.lock"
    lock = LockFile(path)
    with pytest.raises(Locked, match=f"process {os.getpid()} on "):
        LockFile(path)
    assert lock.supported
    lock.release()
    assert not path.exists()
    LockFile(path).release()


def test_lock_ends_when_its_process_is_killed(tmp_path):
    path = tmp_path / "run.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout.readline() == b"locked\n"
            with pytest.raises(Locked, match=f"process {child.pid} on "):
                LockFile(path)
            remove_abandoned(path)
            assert path.exists()
        finally:
            child.kill()
    assert path.exists()
    LockFile(path).release()
    assert not path.exists()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=["full disk", "Ctrl-C"]
)
@pytest.mark.parametrize("function", ["ftruncate", "write"])
def test_lock_whose_note_cannot_be_written_is_released(tmp_path, monkeypatch, function, error):
    path, descriptors = tmp_path / "run.lock", len(os.listdir("/dev/fd"))

    def fail(file, value):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(type(error)) as caught:
            LockFile(path)
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(path)
    assert not path.exists() and len(os.listdir("/dev/fd")) == descriptors
    LockFile(path).release()


def test_only_unlocked_regular_files_are_removed(tmp_path):
    path = tmp_path / "a"
    path.write_text("left behind")
    link = tmp_path / "link"
    link.symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing"):
        remove_abandoned(tmp_path / name)
    assert path.exists() and link.is_symlink() and (tmp_path / "pipe").exists()
    remove_abandoned(path)
    assert not path.exists()


def test_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    import fcntl

    def unsupported(file, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    lock, other = LockFile(tmp_path / "run.lock"), LockFile(tmp_path / "run.lock")
    assert not lock.supported and not other.supported
    lock.release()
    other.release()
    (tmp_path / "a").write_text("perhaps in use")
    remove_abandoned(tmp_path / "a")
    assert (tmp_path / "a").exists()

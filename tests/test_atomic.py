"""Files are written completely or not at all."""

import errno
import os
import sys
from pathlib import Path

import pytest

from equipoise import _atomic
from equipoise._atomic import atomic_write


def test_file_is_replaced_only_after_complete_write(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["map.csv"]


def test_failed_write_keeps_the_existing_file(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="in the middle"), atomic_write(path) as file:
        file.write(b"ne")
        raise RuntimeError("in the middle")
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["map.csv"]


def test_missing_folder_raises(tmp_path):
    path = tmp_path / "none" / "a"
    with pytest.raises(FileNotFoundError, match=r"the folder '.*none' does not exist"), atomic_write(path):
        raise AssertionError("there is nothing to write to")


posix = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX locks, permissions and devices")


@posix
def test_abandoned_temporary_files_are_removed_by_the_next_process(tmp_path, monkeypatch):
    monkeypatch.setattr(_atomic, "_swept", set())
    left = tmp_path / ".run.eqc.equipoise-4711-0123abcd.part"
    foreign = [".run.eqc.part", "equipoise-1.part", ".a.equipoise-1-0123.part", "map.csv"]
    for name in (left.name, *foreign):
        (tmp_path / name).write_text("")
    with atomic_write(tmp_path / "new"), pytest.MonkeyPatch.context() as patch:
        assert not left.exists()
        patch.setattr(_atomic, "_swept", set())
        with atomic_write(tmp_path / "other"):
            partial = [path.name for path in tmp_path.iterdir() if "equipoise-" in path.name and path.name[0] == "."]
            assert len(partial) == 3  # those in use, and the one that is not ours
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*foreign, "new", "other"])


@posix
@pytest.mark.parametrize("n_bytes", [10, 10**6])  # fails in flush, and in write
def test_full_disk_raises_an_error_with_the_name_and_keeps_the_file(tmp_path, monkeypatch, n_bytes):
    path = tmp_path / "map.csv"
    path.write_text("old")
    full = open("/dev/full", "wb")  # noqa: SIM115  # closed by atomic_write
    monkeypatch.setattr(_atomic, "_open_locked", lambda target: (tmp_path / ".map.csv.part", full))
    with pytest.raises(OSError, match=r"No space left on device: '.*map\.csv'") as error, atomic_write(path) as file:
        file.write(bytes(n_bytes))
    assert error.value.errno == errno.ENOSPC
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["map.csv"]


@posix
def test_links_are_followed_and_permissions_kept(tmp_path):
    path, link = tmp_path / "map.csv", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink() and path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o600


@posix
def test_devices_are_written_and_not_replaced(tmp_path):
    with atomic_write(os.devnull) as file:
        file.write(b"nowhere")
    assert not Path(os.devnull).is_file()
    read, write = os.pipe()
    with atomic_write(f"/dev/fd/{write}") as file:
        file.write(b"through a pipe")
    os.close(write)
    assert os.read(read, 100) == b"through a pipe"
    os.close(read)


def test_longest_file_name_is_written(tmp_path):
    path = tmp_path / ("é" * 127)  # 254 bytes; the limit is 255
    with atomic_write(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_folder_that_cannot_be_written_raises_with_the_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match="does not exist"), atomic_write(tmp_path / "file" / "a"):
        raise AssertionError("there is nothing to write to")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"'.*folder'"), atomic_write(tmp_path / "folder"):
        pass
    if Path("/proc/self").exists():  # where even root creates no files
        with pytest.raises(OSError, match=r"'/proc/self/map\.csv'"), atomic_write("/proc/self/map.csv"):
            raise AssertionError("there is nothing to write to")

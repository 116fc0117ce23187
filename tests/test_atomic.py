"""Files are written completely or not at all."""

import pytest

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

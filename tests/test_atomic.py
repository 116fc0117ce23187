"""Files appear whole, under their name, or not at all."""

import pytest

from equipoise._atomic import atomic_write


def test_a_file_appears_when_all_is_written(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["map.csv"]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="in the middle"), atomic_write(path) as file:
        file.write(b"ne")
        raise RuntimeError("in the middle")
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["map.csv"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "none" / "a"
    with pytest.raises(FileNotFoundError, match=r"the folder '.*none' does not exist"), atomic_write(path):
        raise AssertionError("there is nothing to write to")

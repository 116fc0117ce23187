"""Maps written in blocks of rows: rows in input order, complete or not at all."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.thread_ranks import run_ranks

from equipoise.distributed import row_output
from equipoise.distributed.partition import Partition
from equipoise.distributed.row_output import check_output, write_rows

pytestmark = pytest.mark.ranks
N = 3500  # four blocks of rows
Y = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)
ORDER = np.random.default_rng(1).permutation(N)
NAMES = ["map.zarr", "map.parquet", "map.npy"]


def write(path, size=2, Y=Y):
    def work(group):
        ids = ORDER[Partition.of(group, N).own]
        write_rows(group, path, Y[ids], ids, N)

    run_ranks(size, work)


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".zarr":
        return pytest.importorskip("zarr").open(str(path), mode="r")[:]
    from pyarrow import parquet

    table = parquet.read_table(path)
    assert_array_equal(table["row"], np.arange(N))
    return np.column_stack([table["y1"], table["y2"]])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_rows_are_in_input_order_for_any_number_of_ranks(tmp_path, name, size):
    write(tmp_path / name, size)
    assert_array_equal(read(tmp_path / name), Y)
    write(tmp_path / name, size, 2 * Y)  # replaces it
    assert_array_equal(read(tmp_path / name), 2 * Y)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("failing", [0, 1])
def test_failure_of_a_rank_leaves_the_old_map(tmp_path, monkeypatch, name, failing):
    path = tmp_path / name
    write(path)
    writer = "_write_" + path.suffix[1:]
    original = getattr(row_output, writer)

    def fail(group, *arguments):
        original(group, *arguments)
        if group.rank == failing:
            raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(row_output, writer, fail)
        with pytest.raises(OSError, match="disk full"):
            write(path, 2, 2 * Y)
    assert_array_equal(read(path), Y)
    write(path, 3, 3 * Y)
    assert_array_equal(read(path), 3 * Y)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", NAMES[:2])
def test_old_folder_is_restored_if_the_new_one_cannot_be_renamed(tmp_path, monkeypatch, name):
    path, replace = tmp_path / name, row_output.os.replace
    write(path)

    def failing(source, target):
        if str(source).endswith("equipoise-partial"):
            raise OSError("no renaming")
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(row_output.os, "replace", failing)
        with pytest.raises(OSError, match="no renaming"):
            write(path, 2, 2 * Y)
    assert_array_equal(read(path), Y)
    path.rename(tmp_path / f".{name}.equipoise-old")  # a process ended between the renamings
    with monkeypatch.context() as patched:
        patched.setattr(row_output, "_replace", lambda partial, path: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write(path, 2, 2 * Y)
    assert_array_equal(read(path), Y)
    write(path, 2, 2 * Y)
    assert_array_equal(read(path), 2 * Y)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_file_is_replaced_by_a_folder_and_a_link_by_a_map(tmp_path):
    (tmp_path / "map.zarr").write_text("a file")
    (tmp_path / "map.npy").mkdir()
    (tmp_path / "kept").write_text("target")
    (tmp_path / "map.parquet").symlink_to(tmp_path / "kept")
    for name in NAMES:
        write(tmp_path / name)
        assert_array_equal(read(tmp_path / name), Y)
    assert (tmp_path / "kept").read_text() == "target"


def test_unknown_format_and_missing_folder_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"unknown format '\.csv' of .*map\.csv; choose from \.zarr, \.parquet, \.npy"):
        check_output(tmp_path / "map.csv")
    with pytest.raises(FileNotFoundError, match=r"the folder '.*none' does not exist; create it or choose another"):
        write(tmp_path / "none" / "map.npy")
    assert list(tmp_path.iterdir()) == []

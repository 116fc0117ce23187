"""Parquet and Feather files give back the table that was written; invalid files raise."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pyarrow
import pytest
from pyarrow import feather, parquet
from support.read_cases import KINDS, NAMES, X, assert_read_raises

from equipoise import data
from equipoise.data.read import arrow_files

# Parquet


def test_parquet_columns_labels_and_ids(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr(arrow_files, "rows_per_block", lambda bytes_per_row: 2)
    frame = pd.DataFrame({"a": X[:, 0], "n": np.arange(60), "kind": pd.Categorical(KINDS), "b": X[:, 1].astype("f4")})
    frame["when"], frame["yes"] = pd.Timestamp("2024-02-03"), True
    frame.set_axis(NAMES, axis=0).to_parquet(tmp_path / "t.parquet")
    found = data.read(tmp_path / "t.parquet", label="kind")
    np.testing.assert_array_equal(found.X, np.column_stack([X[:, 0], np.arange(60), X[:, 1].astype("f4")]))
    assert found.columns == ("a", "n", "b") and found.classes == ("a", "b", "c") and list(found.ids) == list(NAMES)
    assert found.extra["when"][0].startswith("2024-02-03") and list(found.extra) == ["when", "yes"]
    found = data.read(tmp_path / "t.parquet", columns=["yes", "a"])
    assert found.X[:, 0].tolist() == [1.0] * 60 and found.extra["n"].dtype == np.float64
    assert_read_raises(tmp_path / "t.parquet", "column 'kind': values of type .* are not numbers", columns=["kind"])


def test_invalid_parquet_raises(tmp_path):
    parquet.write_table(
        pyarrow.table({"a": [1, 2], "b": [1.0, None], "c": np.array([2**63, 1], dtype=np.uint64)}),
        tmp_path / "t.parquet",
    )
    assert_read_raises(tmp_path / "t.parquet", "row 1, column 'b': missing value")
    assert data.read(tmp_path / "t.parquet", columns=["a", "c"]).X[0, 1] == 2.0**63
    parquet.write_table(pyarrow.table({"a": ["x"]}), tmp_path / "t.parquet")
    assert_read_raises(tmp_path / "t.parquet", "has no numeric column to embed")
    parquet.write_table(pyarrow.table({"a": pyarrow.array([], pyarrow.int64())}), tmp_path / "t.parquet")
    assert_read_raises(tmp_path / "t.parquet", "has no rows")
    (tmp_path / "t.parquet").write_bytes(b"no parquet")
    assert_read_raises(tmp_path / "t.parquet", "cannot be read as Parquet")


@pytest.mark.parametrize("said, problem", [(51, "row group . has 50 rows, but its metadata says 51"), (-1, "says -1")])
def test_parquet_with_another_number_of_rows_than_stated_raises(tmp_path, said, problem):
    """Each byte of the metadata that may be the size of a row group is replaced in turn."""
    path, rows = tmp_path / "t.parquet", np.arange(100.0)
    table = pyarrow.table({"a": rows, "b": rows, "c": ["x", "y"] * 50})
    parquet.write_table(table, path, row_group_size=50, compression="none", use_dictionary=False)
    written, found = path.read_bytes(), []
    start = len(written) - 8 - int.from_bytes(written[-8:-4], "little")
    zigzag = {50: 100, 51: 102, -1: 1}  # how Thrift writes these integers
    for i in range(start, len(written) - 8):
        if written[i] == zigzag[50]:
            path.write_bytes(written[:i] + bytes([zigzag[said]]) + written[i + 1 :])
            try:
                table = data.read(path)
                assert len(table.X) == len(table.extra["c"]) and table.X.max() <= 99
            except ValueError as error:
                found.append(str(error))
    assert all("t.parquet cannot be read as Parquet: " in error for error in found)
    assert sum(re.search(problem, error) is not None for error in found) >= 2  # one for each row group


# Feather


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_feather_columns_labels_and_ids(tmp_path, monkeypatch, compression):
    monkeypatch.setattr(arrow_files, "rows_per_block", lambda bytes_per_row: 2)
    table = pyarrow.table({"name": list(NAMES), "a": X[:, 0], "n": np.arange(60), "kind": list(KINDS)})
    for path in (tmp_path / "t.feather", tmp_path / "t.arrow"):
        feather.write_feather(table, path, compression=compression, chunksize=40)
        found = data.read(path, label="kind", id="name")
        np.testing.assert_array_equal(found.X, np.column_stack([X[:, 0], np.arange(60)]))
        assert found.name == "t" and found.classes == ("a", "b", "c") and list(found.ids) == list(NAMES)


def test_invalid_feather_raises(tmp_path):
    path = tmp_path / "t.feather"
    feather.write_feather(pyarrow.table({"a": [1.0, None]}), path)
    assert_read_raises(path, "row 1, column 'a': missing value")
    feather.write_feather(pyarrow.table({"a": ["x"]}), path)
    assert_read_raises(path, "has no numeric column to embed")
    feather.write_feather(pyarrow.table({"a": pyarrow.array([], pyarrow.int64())}), path)
    assert_read_raises(path, "has no rows")
    path.write_bytes(b"no feather")
    assert_read_raises(path, "cannot be read as Feather")


# Memory


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_wide_arrow_files_are_read_a_few_columns_at_a_time(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(arrow_files, "rows_per_block", lambda bytes_per_row: 2**19 // int(bytes_per_row))
    values = np.random.RandomState(0).standard_normal((1000, 2000))
    table = pyarrow.table({f"g{j}": values[:, j] for j in range(2000)})
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path, row_group_size=600)
    else:
        feather.write_feather(table, path, compression="lz4", chunksize=600)
    del table
    before = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(before)
    pyarrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        found = data.read(path).X
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pyarrow.set_memory_pool(before)
    np.testing.assert_array_equal(found, values)
    assert pool.max_memory() < 0.15 * found.nbytes  # measured 0.07; whole batches took more than 1
    assert peak < 1.2 * found.nbytes  # measured 1.04

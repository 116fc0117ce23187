"""Maps written to files of every format, and invalid output."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

from equipoise import data
from equipoise.data import Dataset

rng = np.random.RandomState(0)
X = rng.standard_normal((60, 4))
NAMES = np.array([f"row {i}" for i in range(60)], dtype=object)


Y = rng.standard_normal((60, 2)).astype(np.float32)


EXTRA = {"note": np.array(['a, "b"\nc', "é"] * 30, dtype=object), "y1": np.where(np.arange(60) == 3, np.nan, 0.5)}


MAPPED = Dataset("t", X, np.arange(60) % 3, ("a", "b", "c"), (), NAMES, EXTRA)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".h5ad"])
def test_written_map_reads_back_unchanged(tmp_path, suffix):
    if suffix == ".h5ad":
        pytest.importorskip("anndata")
    path = tmp_path / f"map{suffix}"
    data.write_map(path, Y, MAPPED)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == ".h5ad":
        found = data.read(path, label="class")
    else:
        found = data.read(path, columns=["y1", "y2"], label="class", id="id")
    np.testing.assert_array_equal(found.X.astype(np.float32), Y)
    assert found.classes == MAPPED.classes and found.labels.tolist() == MAPPED.labels.tolist()
    assert list(found.ids) == list(NAMES) and list(found.extra["note"]) == list(EXTRA["note"])
    np.testing.assert_array_equal(found.extra["y1_"], EXTRA["y1"])


def test_map_as_csv_and_npy(tmp_path):
    data.write_map(tmp_path / "map.csv", Y[:2], Dataset("t", X[:2], None, ()))
    with open(tmp_path / "map.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["y1", "y2"] and np.array(rows, dtype=np.float32).tolist() == Y[:2].tolist()
    data.write_map(tmp_path / "map.csv", Y[:1], Dataset("t", X[:1], None, (), (), None, {"n": np.array([2001.0])}))
    assert (tmp_path / "map.csv").read_text().splitlines()[1].endswith(",2001")
    data.write_map(tmp_path / "map.npy", Y, MAPPED)
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), Y)


def test_invalid_map_output_raises(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"Y must have shape \(5, d\), one row for each row of t, got shape \(60, 2\)"):
        data.write_map(tmp_path / "map.csv", Y, Dataset("t", X[:5], None, ()))
    with pytest.raises(
        ValueError, match=r"unknown suffix for a map; choose from \.csv, \.tsv, \.parquet, \.npy, \.h5ad"
    ):
        data.write_map(tmp_path / "map.doc", Y, MAPPED)
    with pytest.raises(ValueError, match=r"the output folder '.*nowhere' does not exist"):
        data.check_map_path(tmp_path / "nowhere" / "map.csv")
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match="pip install"):
        data.check_map_path(tmp_path / "map.h5ad")
    assert not list(tmp_path.iterdir())

"""Reading any file gives either a finite table or a ValueError with a one-line message."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet
from scipy import io as scipy_io
from scipy import sparse

from equipoise import data
from equipoise.data.read import annotated, text_lines

TABLES = [".npz", ".mtx", ".mtx.gz", ".csv.gz", ".csv.bz2", ".csv.zst", ".parquet", ".feather"]
FEW = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

number = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(["1", "0.5", " 2", "1e5", "-0", "٣", "9" * 400, "1e999", "1_0", "0x1F", "1,5", "+-1"]),
)
missing = st.sampled_from(["", "NA", "nan", "NaN", "null", "?", "inf", "-Infinity", " "])
text = st.text(max_size=8)
cell = st.one_of(number, number, number, missing, text)
columns = st.lists(st.sampled_from([number, missing, text, cell]), min_size=1, max_size=5)


@st.composite
def tables(draw):
    """Draw CSV tables with uniform or mixed columns, possibly ragged, in any delimiter and encoding."""
    kinds = draw(columns)
    rows = [draw(st.lists(text, min_size=len(kinds), max_size=len(kinds), unique=True))] if draw(st.booleans()) else []
    rows += [[draw(kind) for kind in kinds] for _ in range(draw(st.integers(0, 6)))]
    if rows and draw(st.integers(0, 4)) == 0:
        draw(st.sampled_from(rows)).append("1")
    written = io.StringIO()
    style = {"delimiter": draw(st.sampled_from(",;\t")), "lineterminator": draw(st.sampled_from(["\n", "\r\n", "\r"]))}
    csv.writer(written, **style).writerows(rows)
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "utf-32"]))
    return written.getvalue().encode(encoding, errors="replace")


def read_or_message(source, **wanted):
    """Return the validated data set or the validated error message; let other exceptions propagate."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "stream: decimal commas")
        try:
            found = data.read(source, **wanted)
        except ValueError as error:
            message = str(error)
            assert message and "\n" not in message and len(message) < 1000
            return message
    n, D = found.X.shape
    values = found.X.data if sparse.issparse(found.X) else found.X
    assert n >= 1 and D >= 1 and np.isfinite(np.asarray(values, dtype=np.float64)).all()
    assert len(found.columns) in (0, D) and (found.ids is None or len(found.ids) == n)
    assert all(len(column) == n for column in found.extra.values())
    assert found.labels is None or set(found.labels) == set(range(len(found.classes)))
    return found


@FEW
@given(tables(), st.sampled_from([{}, {"columns": ["a"]}, {"label": "column 1"}, {"id": "1"}]))
@example(b"", {})
@example(b"a,b", {})
@example(b"\xff\xfe", {})
@example(b"\x00", {})
@example(b'"', {})
@example(b"1\n" * 3 + b"\xff", {})
def test_arbitrary_text_is_read_or_rejected(content, wanted):
    read_or_message(io.BytesIO(content), **wanted)


@FEW
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_rejected(content):
    read_or_message(io.BytesIO(content))
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (
            ".csv",
            ".tsv",
            ".csv.gz",
            ".csv.zst",
            ".npy",
            ".npz",
            ".mtx",
            ".mtx.gz",
            ".parquet",
            ".feather",
        ):
            path = Path(folder) / f"t{suffix}"
            path.write_bytes(content)
            read_or_message(path)


@FEW
@given(tables(), st.integers(1, 60))
def test_block_size_does_not_change_the_table(content, size):
    whole = read_or_message(io.BytesIO(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_lines, "BLOCK_BYTES", size)
        blocks = read_or_message(io.BytesIO(content))
    if isinstance(whole, str) or isinstance(blocks, str):
        return  # the first error, and the type of a column that starts empty, depend on the block size
    np.testing.assert_array_equal(whole.X, blocks.X)
    assert whole.columns == blocks.columns and list(whole.extra) == list(blocks.extra)
    for name, column in whole.extra.items():
        np.testing.assert_array_equal(column, blocks.extra[name])


@FEW
@given(
    st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1, max_size=9)
)
def test_finite_numbers_are_read_exactly(rows):
    written = io.StringIO()
    csv.writer(written).writerows([["a", "b", "c"], *rows])
    np.testing.assert_array_equal(read_or_message(io.BytesIO(written.getvalue().encode())).X, np.array(rows))


@FEW
@given(st.lists(st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{1,20}", fullmatch=True), min_size=1, max_size=9))
@example(["9007199254740993", "0.5000000000000000277", "12345678.12345678", "-.5", "999999999999999999", "-0.0"])
def test_decimals_of_any_length_are_read_exactly(cells):
    """After the first block, numbers are parsed by Arrow instead of float()."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_lines, "BLOCK_BYTES", 4)
        found = read_or_message(io.BytesIO(("x\n0\n" + "\n".join(cells)).encode())).X[1:, 0]
    assert found.tobytes() == np.array([float(cell) for cell in cells]).tobytes()


# Valid files of every format, truncated or with changed bytes


@cache
def valid_file(suffix):
    X = np.arange(24.0).reshape(8, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        if suffix == ".npy":
            np.save(path, X)
        elif suffix == ".npz":
            np.savez_compressed(path, X=X, y=np.arange(8))
        elif suffix in (".mtx", ".mtx.gz"):
            scipy_io.mmwrite(Path(folder) / "t.mtx", sparse.csr_matrix(X))
            if suffix == ".mtx.gz":
                path.write_bytes(gzip.compress((Path(folder) / "t.mtx").read_bytes()))
        elif suffix.startswith(".csv."):
            with pyarrow.output_stream(path, compression="detect") as stream:
                stream.write(b"a,b\n1,2\n3,4\n")
        elif suffix == ".png":
            from PIL import Image

            Image.fromarray(X.astype(np.uint8)).save(path)
        elif suffix in (".parquet", ".feather"):
            table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": list("abcdefgh")})
            (parquet.write_table if suffix == ".parquet" else feather.write_feather)(table, path)
        else:
            anndata = pytest.importorskip("anndata")
            anndata.AnnData(X=sparse.csr_matrix(X)).write_h5ad(path)
        return path.read_bytes()


@pytest.mark.parametrize("suffix", [".npy", *TABLES, ".png", ".h5ad"])
@settings(FEW, max_examples=200)
@given(st.data())
def test_corrupt_files_are_read_or_rejected(suffix, data):
    """H5AD files are only truncated: without the check in a separate process, a changed byte may crash this one."""
    content = bytearray(valid_file(suffix))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        if suffix != ".h5ad" and data.draw(st.booleans()):
            content[at] = data.draw(st.integers(0, 255))
        elif at:
            del content[at:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        path.write_bytes(content)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(annotated, "check_in_separate_process", lambda path, kind: None)
            read_or_message(Path(folder) if suffix == ".png" else path)


def test_corrupt_zarr_stores_are_read_or_rejected(tmp_path):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "t.zarr"
    zarr.save_array(str(path), np.arange(24.0).reshape(8, 3))
    for file in [file for file in path.rglob("*") if file.is_file()]:
        content = file.read_bytes()
        for changed in (b"", b"{}", content[: len(content) // 2], content[::-1], b"[" * 5000):
            file.write_bytes(changed)
            read_or_message(path)
        file.write_bytes(content)
    assert read_or_message(path).X.shape == (8, 3)

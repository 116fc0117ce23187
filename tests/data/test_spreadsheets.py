"""Tables as spreadsheets write them: decimal commas, numbers with separators of thousands, and Excel files."""

from __future__ import annotations

import datetime
import io
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.read_cases import assert_read_raises

from equipoise import data
from equipoise.data.read import text_lines


@pytest.mark.parametrize(
    ("text", "expected", "names"),
    [
        ("a;b\n1,5;2\n-0,25;+3,0\n", [[1.5, 2], [-0.25, 3]], ("a", "b")),
        ("a\tb\n1,5e-3\t2\n", [[0.0015, 2]], ("a", "b")),
        ('a;b\n"1,5";"2,25"\n', [[1.5, 2.25]], ("a", "b")),
        ("a;b\n1.234,5;2\n1.000.000,25;3\n", [[1234.5, 2], [1000000.25, 3]], ("a", "b")),
        ("1,5;2,5;3,5\n4,5;5,5;6,5\n", [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]], ("column 1", "column 2", "column 3")),
        ("a;b\r\n1,5;2\r\n3,5;4,5\r\n", [[1.5, 2], [3.5, 4.5]], ("a", "b")),
    ],
)
def test_decimal_commas_are_read_as_points(text, expected, names):
    with pytest.warns(UserWarning, match=r"stream: decimal commas, as in '.*', are read as decimal points"):
        found = data.read(io.BytesIO(text.encode()))
    assert_array_equal(found.X, expected)
    assert found.columns == names


def test_decimal_commas_beside_text_and_in_later_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 64)
    rows = [f"{i},5;note {i}, with a comma;{i}" for i in range(200)]
    (tmp_path / "t.csv").write_text("x;note;n\n" + "\n".join(rows))
    with pytest.warns(UserWarning, match="decimal commas, as in '0,5'"):
        found = data.read(tmp_path / "t.csv")
    assert_array_equal(found.X, np.column_stack([np.arange(200) + 0.5, np.arange(200)]))
    assert found.extra["note"][7] == "note 7, with a comma"


def test_commas_are_not_decimal_in_text_or_between_commas():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = data.read(io.BytesIO(b"x;note\n1.5;Smith, 1,5 m\n2.5;b\n"))
        assert_array_equal(found.X, [[1.5], [2.5]])
        assert list(found.extra["note"]) == ["Smith, 1,5 m", "b"]
        assert_array_equal(data.read(io.BytesIO(b"1,5\n2,6\n")).X, [[1, 5], [2, 6]])


def test_ambiguous_numbers_raise(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,5;2\n2,5;1.234\n")
    with pytest.warns(UserWarning, match="decimal commas"):
        assert_read_raises(tmp_path / "t.csv", "'1.234' can mean a thousand times more where '1,5' has a decimal comma")
    (tmp_path / "t.csv").write_text('a,b\n1,2\n3,"1,234"\n')
    assert_read_raises(tmp_path / "t.csv", "line 3, column 'b': '1,234' contains a comma; write it as a plain number")


def write_sheet(path, rows, *more):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name in more:
        book.create_sheet(name).append([1, 2])
    book.save(path)


def test_excel_is_read_like_csv(tmp_path):
    day = datetime.datetime(2024, 5, 1, 12, 30)
    rows = [["x", "n", "kind", "when"], [1.5, 7, "a, b", day], [None] * 4, [0.1, -3, "c", None]]
    write_sheet(tmp_path / "t.xlsx", rows)
    found = data.read(tmp_path / "t.xlsx", label="kind")
    assert_array_equal(found.X, [[1.5, 7], [0.1, -3]])
    assert found.columns == ("x", "n") and found.classes == ("a, b", "c")
    assert list(found.extra["when"]) == ["2024-05-01T12:30:00", ""]
    write_sheet(tmp_path / "t.xlsx", rows, "second", "third")
    with pytest.warns(UserWarning, match="t.xlsx has 3 sheets; only the first, 'Sheet', is read"):
        data.read(tmp_path / "t.xlsx")


def test_spreadsheets_that_cannot_be_read_raise(tmp_path, monkeypatch):
    write_sheet(tmp_path / "t.xlsx", [["x", "y"], [1, None], [2, 3]])
    assert_read_raises(tmp_path / "t.xlsx", "line 2, column 'y': missing value", columns=["x", "y"])
    (tmp_path / "bad.xlsx").write_bytes(b"PK no zip")
    assert_read_raises(tmp_path / "bad.xlsx", "bad.xlsx cannot be read as Excel")
    for suffix in (".xls", ".ods"):
        (tmp_path / f"t{suffix}").write_bytes(b"")
        assert_read_raises(tmp_path / f"t{suffix}", f"{suffix} files cannot be read; save the sheet as .xlsx or .csv")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"reading Excel files needs openpyxl.*; or save the sheet as CSV"):
        data.read(tmp_path / "t.xlsx")

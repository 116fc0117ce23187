"""Columns of integers with leading zeros, such as postcodes, are text in tables of columns of every kind."""

from __future__ import annotations

import io

import pytest

import equipoise as eq
from equipoise import data
from equipoise.data.read import text_lines


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("width", [2, 300])
@pytest.mark.parametrize("code", ["007", "+01", "-00"])
def test_a_column_with_a_leading_zero_is_text(delimiter, quote, width, code):
    """Codes are found at the start, in the middle and at the end of a file, by Arrow and by Python's csv module."""
    for i in range(3):
        cells = ["1", "20", "3"]
        cells[i] = code
        for bad in ("", "1_0"):  # Arrow rejects the second
            lines = [["a", *(f"x{j}" for j in range(width - 2)), "z"]]
            lines += [[cell, *["0.5"] * (width - 2), quote + cell + quote] for cell in cells]
            lines[1][1:2] = [bad or "4"] if width > 2 else lines[1][1:2]
            text = "\n".join(delimiter.join(line) for line in lines)
            X = data.read(io.BytesIO(text.encode()), every_kind=True).X
            assert X.column("a").to_pylist() == X.column("z").to_pylist() == cells
            if width > 2:
                assert X.column("x5").to_pylist() == [0.5] * 3


@pytest.mark.parametrize("cell", ["0", "-0", "0.5", "-0.25", "0e1", "10", "00.5", "0.00"])
def test_numbers_with_zeros_are_numbers(cell):
    X = data.read(io.BytesIO(f"a,b\n1,{cell}\n{cell},2\n".encode()), every_kind=True).X
    assert X.column("a").to_pylist() == [1, float(cell)]
    assert eq.Mixed().describe([["1"], [cell], ["3.5"]]).startswith("compared: 1 number")


def test_a_code_after_the_first_block_turns_the_column_into_text(monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 64)
    cells = [*map(str, range(1000, 1400)), "00017"]
    text = "a,b\n" + "".join(f"0.5,{cell}\n" for cell in cells)
    assert data.read(io.BytesIO(text.encode()), every_kind=True).X.column("b").to_pylist() == cells

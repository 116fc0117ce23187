"""Read the first sheet of Excel files with openpyxl."""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import date, time
from pathlib import Path
from typing import Any

from ..._names import quote
from ..._optional import import_optional
from ..._plural import plural
from ..._warn import warn
from ..dataset import Dataset
from .decode_errors import decoding
from .selection import Selection, to_text
from .text_table import read_text_table

LARGEST = 2**32  # bytes of an unpacked file; chosen: a file of this size has more cells than Excel allows


def read_excel(path: Path, selection: Selection) -> Dataset:
    """Return the table on the first sheet of an .xlsx file; blank rows are left out, other sheets are ignored."""
    source = str(path)
    try:
        openpyxl = import_optional("openpyxl", "excel", "reading Excel files")
    except ImportError as error:
        raise ImportError(f"{error}; or save the sheet as CSV") from error
    with decoding(source, "Excel"):
        with zipfile.ZipFile(path) as archive:
            if sum(part.file_size for part in archive.infolist()) > LARGEST:
                raise ValueError("it is too large; save the sheet as CSV")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheets, text = book.worksheets, io.StringIO()
        if not sheets:
            raise ValueError("it has no sheet with cells")
        writer = csv.writer(text, lineterminator="\n")
        for row in sheets[0].iter_rows(values_only=True):
            if any(value is not None for value in row):
                writer.writerow([_cell(value) for value in row])
        book.close()
    if len(sheets) > 1:
        warn(f"{source} has {plural(len(sheets), 'sheet')}; only the first, {quote(sheets[0].title)}, is read")
    return read_text_table(io.BytesIO(text.getvalue().encode()), source, selection, delimiter=",")


def _cell(value: Any) -> str:
    """Return a cell as text: dates in ISO format, integers without a decimal point."""
    return value.isoformat() if isinstance(value, date | time) else to_text(value)

"""Text in CSV and TSV files that a spreadsheet would run as a formula.

Spreadsheets run a cell that begins with =, +, -, @, a tab or a line break, quoted or not. An apostrophe in front makes
the cell a text. Writers add the apostrophe and readers remove it. A text that begins with apostrophes followed by one
of these characters gets one more apostrophe, so that every text is read back as it was.
"""

from __future__ import annotations

import re

MARK = "'"
FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # the last four are full-width, for Japanese versions
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def mark_formula(text: str) -> str:
    """Return a text, with an apostrophe before it if a spreadsheet could run it; numbers such as -1.5 get none."""
    return MARK + text if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def unmark_formula(cell: str) -> str:
    """Return the text of a cell without the apostrophe that `mark_formula` adds."""
    return cell[1:] if cell.startswith(MARK) and FORMULA.match(cell) else cell

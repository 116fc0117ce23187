"""Mark text in CSV and TSV files so that a spreadsheet does not run it as a formula.

Spreadsheets run a cell that begins with =, +, -, @, a tab or a line break, quoted or not. An apostrophe in front makes
the cell a text. The writers of this package add the apostrophe, and its readers remove it. A text that already begins
with apostrophes followed by one of these characters gets one more apostrophe, so that every text is read back as it
was.
"""

from __future__ import annotations

import re

MARK = "'"
FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # the last four are full-width, for Japanese versions
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def mark_formula(text: str) -> str:
    """Prefix a text with an apostrophe if a spreadsheet could run it as a formula; numbers such as -1.5 get none."""
    return MARK + text if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def unmark_formula(cell: str) -> str:
    """Return the text of a cell without the apostrophe that `mark_formula` adds."""
    return cell[1:] if cell.startswith(MARK) and FORMULA.match(cell) else cell

"""What the first rows of a file say about its columns, and choices that suit them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..data import check_table, read
from ..data.dominance import dominant_column
from ..data.read.every_column import gather_columns
from ..data.read.selection import Selection
from ..data.read.text_table import read_text_table
from ..mixed.frame import WORDS, Column, make_column, read_columns
from ..mixed.gower import LIKE_A_NAME, NUMBERS_ROWS, reason_to_leave_out
from ..views.column import MAX_CLASSES, MAX_INTEGER_CLASSES
from .session.metrics import COMPLETE, EVERY_KIND
from .table_choices import TableChoices

SAMPLE = 2**20  # bytes that are read; chosen
LISTED = 200  # columns of numbers that are listed; chosen
EXAMPLES, LONGEST = 3, 24  # examples of a column, and characters of an example
# Names that people give to the column of classes, in lower case, the most telling first.
CLASS_NAMES = ("class", "label", "target", "species", "type", "kind", "category", "group", "cluster", "diagnosis", "y")
ID_NAMES = ("id", "name", "index", "row", "barcode")  # and to the column of row names
ROW_NAMES = "row names"  # the kind of a first column without a name
AS_TEXT = "numbers as text"


@dataclass(frozen=True)
class ColumnPreview:
    """A column in the first rows of a file.

    Parameters
    ----------
    name : str
    kind : str
        What it contains, in words: "numbers", "categories", "dates" and so on.
    is_number : bool
        Whether metrics of numbers can compare it.
    examples : str
        Its first different values.
    distinct, gaps : int
        Number of different values and of missing values.
    useless : str
        Why it says nothing about the similarity of rows, such as "constant"; empty if it does.
    """

    name: str
    kind: str
    is_number: bool
    examples: str
    distinct: int
    gaps: int
    useless: str


@dataclass(frozen=True)
class Preview:
    """The first rows of a file, with suggested choices.

    Parameters
    ----------
    columns : tuple of ColumnPreview
        All columns except, in wide tables, most columns of numbers.
    unlisted : int
        Number of the other columns.
    rows : int
        Number of rows that were read.
    is_whole : bool
        Whether these are all rows.
    choices : TableChoices
        Choices that suit these rows.
    metric : str
        A metric that suits these rows.
    reason : str
        Why the columns are standardised, if they are.
    """

    columns: tuple[ColumnPreview, ...]
    unlisted: int
    rows: int
    is_whole: bool
    choices: TableChoices
    metric: str
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the preview as a dictionary that can be written as JSON."""
        return asdict(self)


def preview(path: Path, name: str) -> Preview:
    """Return the preview of a data file, called `name` in messages; raise ValueError if it cannot be read."""
    if path.suffix.lower() == ".npy":
        return _preview_array(path)
    content, is_whole = _first_rows(path, name)
    selection = Selection(every_kind=True)
    dataset = gather_columns(read_text_table(BytesIO(content), name, selection), selection)
    parsed = [make_column(name, array) for name, array in read_columns(dataset.X).items()]
    texts = {name for name, array in read_columns(dataset.X).items() if str(array.type) == "string"}
    columns = [_describe(column, column.name in texts) for column in parsed]
    listed = _listed(columns)
    unlisted = len(columns) - len(listed)
    suggested = _suggest(columns)
    if dataset.ids is not None:  # a first column without a name
        suggested = replace(suggested, id="column 1")
        listed.insert(0, ColumnPreview("column 1", ROW_NAMES, False, _examples(dataset.ids), 0, 0, "without a name"))
    result = Preview(tuple(listed), unlisted, len(dataset.X), is_whole, suggested, next(iter(COMPLETE)))
    embedded = [c for c in columns if c.name not in (suggested.label, suggested.id, *suggested.exclude)]
    if any(column.gaps or not column.is_number for column in embedded):
        return replace(result, choices=replace(suggested, every_kind=True), metric=next(iter(EVERY_KIND)))
    names = {column.name for column in embedded}
    numbers = [column for column in parsed if column.name in names]
    if numbers and (dominant := dominant_column(np.column_stack([column.values for column in numbers]))) is not None:
        reason = f"“{numbers[dominant[0]].name}” has {dominant[1]:.0%} of the variance"
        return replace(result, choices=replace(suggested, standardize=True), reason=reason)
    return result


def _preview_array(path: Path) -> Preview:
    """Return the preview of an NPY file, whose columns have no names."""
    rows, columns = check_table(read(path).X).shape
    return Preview((), columns, rows, True, TableChoices(), next(iter(COMPLETE)))


def _first_rows(path: Path, name: str) -> tuple[bytes, bool]:
    """Return the rows that end in the first SAMPLE bytes of a file, and whether these are all."""
    with open(path, "rb") as file:
        content = file.read(SAMPLE)
    if len(content) < SAMPLE:
        return content, True
    if (end := end_of_last_row(content)) == 0:
        raise ValueError(
            f"{name}: the first row is longer than 1 MB, or a quote in it is not closed; close the quote, or"
            " use fewer columns"
        )
    return content[:end], False


def end_of_last_row(content: bytes) -> int:
    """Return the position after the last line break outside quotes; 0 if there is none."""
    end, is_quoted = len(content), content.count(b'"') % 2 == 1
    while end >= 0:
        begin = content.rfind(b'"', 0, end)  # between two quotes, all or none of the line breaks end a row
        if not is_quoted and (newline := content.rfind(b"\n", begin + 1, end)) >= 0:
            return newline + 1
        end, is_quoted = begin, not is_quoted
    return 0


def _describe(column: Column, is_text: bool) -> ColumnPreview:
    """Return the preview of a column; `is_text` says whether the file has text in it."""
    present = column.values[~np.isnan(column.values)]
    codes = np.unique(present)
    is_number = column.kind == "number" and not is_text
    kind = AS_TEXT if column.kind == "number" and is_text else WORDS[column.kind][1]
    if column.levels:
        examples = _examples([column.levels[int(code)] for code in dict.fromkeys(present[:100].tolist())])
    elif column.kind == "date":
        examples = _examples([str(np.datetime64(int(day), "D")) for day in dict.fromkeys(present[:100].tolist())])
    else:
        examples = _examples([f"{value:.6g}" for value in dict.fromkeys(present[:100].tolist())])
    gaps = len(column.values) - len(present)
    return ColumnPreview(column.name, kind, is_number, examples, len(codes), gaps, reason_to_leave_out(column))


def _examples(values: Any) -> str:
    texts = [str(value) for value in list(values)[: EXAMPLES + 1]]
    shown = [text if len(text) <= LONGEST else text[:LONGEST] + "…" for text in texts[:EXAMPLES]]
    return ", ".join(shown) + (", …" if len(texts) > EXAMPLES else "")


def _listed(columns: list[ColumnPreview]) -> list[ColumnPreview]:
    """Return the columns that are listed: all of them except columns of numbers beyond the first LISTED."""
    numbers = 0
    listed = []
    for column in columns:
        numbers += column.is_number
        if not column.is_number or numbers <= LISTED:
            listed.append(column)
    return listed


def _suggest(columns: list[ColumnPreview]) -> TableChoices:
    """Return a class column, a column with row names, and the columns to leave out."""
    by_name = {column.name.lower(): column for column in columns}
    texts = [c for c in columns if c.kind in (WORDS["category"][1], WORDS["boolean"][1])]
    classes = [c for c in texts if _has_classes(c)]
    telling = [by_name[name] for name in CLASS_NAMES if name in by_name and _has_classes(by_name[name])]
    label = next(iter([*telling, *classes[::-1]]), None)
    useless = [c for c in columns if c.useless and c is not label]
    names = [c for c in columns if c is not label and _names_rows(c)]
    names.sort(key=lambda c: (c.is_number, c.name.lower() not in ID_NAMES))
    others = [c for c in useless if not names or c is not names[0]]
    return TableChoices(
        None if label is None else label.name, names[0].name if names else None, tuple(c.name for c in others)
    )


def _has_classes(column: ColumnPreview) -> bool:
    """Return whether the values of a column can be classes: few different ones, each in several rows."""
    if column.kind == WORDS["date"][1] or column.useless or column.distinct < 2:
        return False
    return column.distinct <= (MAX_INTEGER_CLASSES if column.is_number else MAX_CLASSES)


def _names_rows(column: ColumnPreview) -> bool:
    return column.useless in (LIKE_A_NAME, NUMBERS_ROWS)

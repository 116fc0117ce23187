"""Text tables become data sets, or raise with a one-line message that names the position."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow
import pytest

from equipoise import data
from equipoise.data.read import growing, text_lines
from equipoise.data.read.arrow_csv import parse_block, parse_wide_block

FLOWERS = "name,width,species,length\nf1,0.5,setosa,1\nf2,1.5,virginica,2e1\nf3,2.5,setosa,-3\n"
X = np.array([[0.5, 1], [1.5, 20], [2.5, -3]])


def read(text, **wanted):
    return data.read(io.BytesIO(text.encode() if isinstance(text, str) else text), **wanted)


def assert_read_raises(text, match, **wanted):
    with pytest.raises(ValueError, match=match) as caught:
        read(text, **wanted)
    assert "\n" not in str(caught.value)


# Valid input


def test_numeric_columns_become_X_and_text_becomes_extra():
    flowers = read(FLOWERS)
    np.testing.assert_array_equal(flowers.X, X)
    assert flowers.X.dtype == np.float64 and flowers.X.flags.c_contiguous and flowers.columns == ("width", "length")
    assert flowers.labels is None and flowers.classes == () and flowers.ids is None
    assert {name: list(column) for name, column in flowers.extra.items()} == {
        "name": ["f1", "f2", "f3"],
        "species": ["setosa", "virginica", "setosa"],
    }


def test_check_table_does_not_copy_a_read_table():
    flowers = read(FLOWERS)
    assert np.shares_memory(data.check_table(flowers.X), flowers.X)


PEAK_OF_A_STREAM = """
import io
import numpy as np
from equipoise import data

def field(name):
    with open("/proc/self/status") as status:
        return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])

text = (",".join(f"{value:.6g}" for value in np.random.RandomState(0).standard_normal(50)) + "\\n").encode()
stream = io.BytesIO(text * 200_000)
data.read(io.BytesIO(text))  # imports what it needs
before = field("VmRSS")
X = data.read(stream).X
print(X.shape == (200_000, 50) and bool((X == X[0]).all()), (field("VmHWM") - before) / X.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_reading_a_stream_does_not_copy_the_table():
    """Memory for a stream of unknown length: the table, its spare rows, and some blocks of text.

    Pages that are not written yet take no memory, so the peak of the process is measured.
    """
    child = subprocess.run([sys.executable, "-c", PEAK_OF_A_STREAM], capture_output=True, text=True, timeout=300)
    right, peak = child.stdout.split() or [child.stderr, np.inf]
    assert right == "True" and float(peak) < 1.6  # two copies would be 2


@pytest.mark.parametrize("expected", [0, 1, 7, 40, 90])
def test_growing_tables_contain_their_rows(expected):
    rows = np.arange(120.0).reshape(40, 3)
    table = growing.GrowingTable(3, expected)
    for first, last in zip([0, 1, 3, 3, 17], [1, 3, 3, 17, 40], strict=True):
        table.append(rows[first:last])
    assert table.n == 40
    X = table.finish()
    np.testing.assert_array_equal(X, rows)
    assert X.flags.c_contiguous and (X if X.base is None else X.base).size <= 2 * X.size  # few unused rows are kept


def test_columns_label_and_id_select_columns():
    flowers = read(FLOWERS, columns=["length"], label="species", id="name")
    np.testing.assert_array_equal(flowers.X, X[:, 1:])
    assert list(flowers.labels) == [0, 1, 0] and flowers.classes == ("setosa", "virginica")
    assert list(flowers.ids) == ["f1", "f2", "f3"] and flowers.columns == ("length",)
    np.testing.assert_array_equal(flowers.extra["width"], X[:, 0])
    np.testing.assert_array_equal(read(FLOWERS, columns=["length", "width"]).X, X[:, ::-1])
    np.testing.assert_array_equal(read(FLOWERS, columns="width").X, X[:, :1])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace(",", ", "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.rstrip(),
        lambda text: "\n\n" + text.replace(",", ";"),
        lambda text: text.replace("setosa", '"setosa"').replace("width", '"width"').replace("0.5", '"0.5"'),
        lambda text: "\ufeff" + text,
        lambda text: text.encode("utf-16"),
    ],
)
def test_delimiters_line_ends_quotes_and_encodings(change):
    flowers = read(change(FLOWERS), label="species", id="name")
    np.testing.assert_array_equal(flowers.X, X)
    assert flowers.classes == ("setosa", "virginica") and list(flowers.ids) == ["f1", "f2", "f3"]


def test_quoted_cells_may_contain_delimiters_quotes_and_line_ends():
    found = read('what,x\n"a, ""b""\nc",1\nd,2\n')
    assert list(found.extra["what"]) == ['a, "b"\nc', "d"] and found.X.ravel().tolist() == [1, 2]
    assert_read_raises('what,x\n"a\nb",1\nd,2\ne,?\n', "stream, line 5, column 'x': missing value")


def test_numeric_first_row_means_no_header():
    found = read("1,2,a\n3,4,b\n")
    assert found.X.tolist() == [[1, 2], [3, 4]] and found.columns == ("column 1", "column 2")
    years = read("who,1990,2000\na,1,2\nb,3,4\n", columns=["1990", "2000"])
    assert years.X.tolist() == [[1, 2], [3, 4]] and list(years.extra["who"]) == ["a", "b"]


def test_unnamed_first_column_becomes_ids():
    found = read(",x,y\n7,1,2\n8,3,4\n")
    assert found.columns == ("x", "y") and list(found.ids) == ["7", "8"] and not found.extra


def test_numeric_classes_are_sorted_and_missing_labels_are_named():
    found = read("x,y\n1,10\n2,9\n3,10\n", label="y")
    assert found.classes == ("9", "10") and list(found.labels) == [1, 0, 1]
    assert read("x,y\n1,a\n2,\n", label="y").classes == ("a", "missing")
    found = read("x,y\n1,10\n2,\n3,2\n4,1\n", label="y")
    assert found.classes == ("1", "2", "10", "missing") and list(found.labels) == [2, 3, 1, 0]


def test_extra_columns_may_have_gaps_or_become_text(monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 24)  # blocks of a few rows
    rows = [(1, "5", "5", ""), (2, "NA", "6.5", ""), (3, "7", "1", ""), (4, "8", "two", "")]
    found = read("x,gaps,mixed,empty\n" + "\n".join(",".join(map(str, row)) for row in rows), columns=["x"])
    np.testing.assert_array_equal(found.extra["gaps"], [5, np.nan, 7, 8])
    assert list(found.extra["mixed"]) == ["5", "6.5", "1", "two"] and list(found.extra["empty"]) == [""] * 4


@pytest.mark.parametrize("size", [70, 1000, 1 << 19])
def test_block_size_does_not_change_the_table(monkeypatch, tmp_path, size):
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", size)
    table_of = np.random.RandomState(0).standard_normal((1500, 3))
    text = "a,b,kind,c\n" + "".join(f"{a!r},{b!r},k{i % 3},{c!r}\n" for i, (a, b, c) in enumerate(table_of.tolist()))
    (tmp_path / "t.csv").write_text(text)
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(text)
    for source in (io.BytesIO(text.encode()), tmp_path / "t.csv", tmp_path / "t.csv.gz"):
        found = data.read(source, label="kind")
        np.testing.assert_array_equal(found.X, table_of)
        np.testing.assert_array_equal(found.labels, np.arange(1500) % 3)
    assert found.name == "t"


def test_arrow_parses_numbers_exactly_like_float():
    """Finite numbers as written by repr and %g, parsed without Python's csv module."""
    values = np.random.RandomState(0).standard_normal(5000) * 10.0 ** np.random.RandomState(1).randint(-300, 300, 5000)
    cells = [cell for value in values.tolist() for cell in (repr(value), f"{value:g}", f"{value:.25g}")]
    numbers, _ = parse_block("\n".join(cells).encode(), ",", 1, ())
    assert numbers.tobytes() == np.array([float(cell) for cell in cells]).tobytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,a\n2, b\n", ["a", "b"]),
        ('1,"a"\n2,b\n', ["a", "b"]),
        ('1,"a, ""b""\n c"\n2,\n', ['a, "b"\n c', ""]),
        ('1,""\r\n\r\n2,NA', ["", "NA"]),
        ('1,a\n2, "b"\n', None),  # Arrow would keep the quotes
        ('1,"a" \n2,b\n', None),  # and here the text after them
        ('1,"a"b\n2,c\n', None),
        ('1,"a"\n2, b\n', None),
        ('1,a"\n2,b"\n', None),
        ('1,"a\n2,b\n', None),
        ("1,a\n2\n", None),
        ("x,a\n2,b\n", None),
    ],
)
def test_parse_block_accepts_only_text_that_arrow_and_csv_read_alike(text, expected):
    columns = parse_block(text.encode(), ",", 2, {1})
    assert (None if columns is None else columns[1][1].to_pylist()) == expected
    assert expected is None or columns[0].tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,a,2\n3, b,4\n", ["a", "b"]),
        ("1,a,2\r\n3,,4", ["a", ""]),
        ('1,"a, ""b""\n c",2\n3,NA,"4"\n', ['a, "b"\n c', "NA"]),
        ('1,a,2\n3, "b",4\n', None),  # spaces before quotes, as in parse_block
        ("1,a,2\n\n3,b,4\n", None),  # a blank line
        ("1,a,2\r3,b,4\r", None),
        ("1\r2,a\n3,b,4\n", None),  # lines of other lengths with the right number of cells in all
        ("1,a\n2,3,b,4\n", None),
        ("1,a,2\n3,b,\n", None),
        ("1,a,2\n3,b,x\n", None),
    ],
)
def test_parse_wide_block_accepts_only_text_that_csv_reads_alike(text, expected):
    columns = parse_wide_block(text.encode(), ",", 3, {1}, gaps=False)
    assert (None if columns is None else columns[1][1].to_pylist()) == expected
    assert expected is None or columns[0].tolist() == [[1, 2], [3, 4]]


def test_parse_wide_block_returns_none_for_text_that_is_not_utf8():
    assert parse_wide_block(b"1,\xff,2\n", ",", 3, {1}) is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_wide_tables_have_names_classes_and_missing_values_like_narrow_ones(tmp_path, end):
    """The first and the last column are text; a column without a selection may have missing values."""
    values = np.random.RandomState(0).standard_normal((50, 400))
    head = ",".join(["", *(f"g{j}" for j in range(400)), "kind"])
    rows = [
        ",".join([f'"cell, {i}"', *map(repr, row[:-1]), "NA" if i % 7 == 0 else repr(row[-1]), "ab"[i % 2]])
        for i, row in enumerate(values.tolist())
    ]
    (tmp_path / "t.csv").write_text(end.join([head, *rows]) + end, newline="")
    names = [f"g{j}" for j in range(398, -1, -1)]
    found = data.read(tmp_path / "t.csv", label="kind", columns=names)
    np.testing.assert_array_equal(found.X, values[:, 398::-1])
    assert list(found.ids[:2]) == ["cell, 0", "cell, 1"] and found.classes == ("a", "b")
    np.testing.assert_array_equal(found.extra["g399"], np.where(np.arange(50) % 7, values[:, 399], np.nan))
    assert_read_raises((tmp_path / "t.csv").read_bytes(), "line 2, column 'g399': missing value", label="kind")


def test_reading_a_wide_table_does_not_copy_it(tmp_path):
    """Arrow's own memory is proportional to a block of text, not to the number of columns."""
    line = ",".join(f"{value:.9g}" for value in np.random.RandomState(0).standard_normal(20_000)) + "\n"
    (tmp_path / "t.csv").write_text(",".join(f"g{j}" for j in range(20_000)) + "\n" + line * 200)
    before = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(before)
    pyarrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        size = data.read(tmp_path / "t.csv").X.nbytes
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pyarrow.set_memory_pool(before)
    assert pool.max_memory() < 0.15 * size  # measured 0.07 of 32 MB; a column each took 1.3
    assert peak < 1.6 * size  # measured 1.24; two copies would be 2


@pytest.mark.parametrize("compression", ["gz", "bz2", "zst"])
def test_compressed_files_are_read(tmp_path, compression):
    path = tmp_path / f"flowers.csv.{compression}"
    with pyarrow.output_stream(path, compression=text_lines.COMPRESSIONS[path.suffix]) as stream:
        stream.write(FLOWERS.encode())
    flowers = data.read(path, columns=["width"])
    assert flowers.name == "flowers" and flowers.X.shape == (3, 1)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"flowers\.csv\..* cannot be read as"):
        data.read(path)


def test_quoted_cells_may_span_blocks(monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 40)
    plain = "".join(f"{i},{i / 7:.6f},k{i}\n" for i in range(40))
    quoted = '40,"0.5","a ""b""\nc, which goes on over the end of a block, and of another, too"\n'
    found = read("n,x,what\n" + plain + quoted + plain)
    assert found.X.shape == (81, 2) and found.X[40].tolist() == [40, 0.5]
    np.testing.assert_array_equal(found.X[:40], found.X[41:])
    assert found.extra["what"][40].startswith('a "b"\nc, which') and found.extra["what"][80] == "k39"
    assert_read_raises("n,x,what\n" + plain + quoted + plain + "1,y,k\n", "line 84, column 'x': 'y' is not a number")
    assert_read_raises(
        "n,x,what\n" + plain + quoted + plain + "1,2\n", "line 84: expected 3 cells as in the first row, got 2"
    )


def test_tsv_is_split_only_at_tabs(tmp_path):
    (tmp_path / "t.tsv").write_text("a,b,c\td\nx,y,z\t1\n")
    assert data.read(tmp_path / "t.tsv").columns == ("d",)


def test_read_leaves_the_stream_open():
    stream = io.BytesIO(FLOWERS.encode())
    data.read(stream)
    assert not stream.closed


def test_standard_input_is_read_without_optional_packages():
    code = """
import sys
sys.modules.update(dict.fromkeys(("pandas", "anndata", "zarr", "h5py")))  # importing them fails
from equipoise import data
print(data.read("-", id="name").X.sum())
"""
    found = subprocess.run([sys.executable, "-c", code], input=FLOWERS, capture_output=True, text=True)
    assert found.stdout == "22.5\n", found.stderr


# Invalid input


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "stream is empty"),
        ("\n\n", "stream is empty"),
        ("a,b\n", "a header but no rows"),
        ("a,b\n1,2\n3\n", "line 3: expected 2 cells as in the first row, got 1"),
        ("a,b\n1,2\n3,4,5\n", "line 3: expected 2 cells as in the first row, got 3"),
        ("a,b\nx,y\n", "has no numeric column to embed .the first row of data is 'x,y'.; convert a column"),
        ("a,a\n1,2\n", "two columns are named 'a'"),
        ("a,b\n1,2\n\n3,\n", "line 4, column 'b': missing value.*fill it in, drop the row, or exclude the column"),
        (
            "a,b\n,2\n1,NA\n3,\n,-\n",
            r"line 2, column 'a': missing value \(''\), also at line 3, column 'b' and line 4, column 'b' \(5 in all,"
            r" in 4 rows and 2 columns\); fill them in, drop the rows, or exclude the columns by selecting others",
        ),
        ("a,b\n1,2\nNA,3\n", "line 3, column 'a': missing value \\('NA'\\)"),
        ("a,b\n,2\n1,3\n", "line 2, column 'a': missing value"),
        ("a,b\n1,2\n3,four\n", "line 3, column 'b': 'four' is not a number"),
        ("a,b\n1,2\n3,1_000\n", "line 3, column 'b': '1_000' is not a number"),
        ("a,b\n1,2\n3,-inf\n", "line 3, column 'b': '-inf' is not a finite double-precision number"),
        ("a,b\n1,2\n3,1e999\n", "line 3, column 'b': '1e999' is not a finite double-precision number"),
        ("a,b\n1,2\n3," + "9" * 400, "line 3, column 'b': '9{40}…' is not a finite double-precision number"),
        ('a,b\n1,2\n3,"4\n5,6\n', "line 4: unexpected end of data; check the quotes"),
        ('a,b\n1,2\n3,"4"5\n', "line 3: .*; check the quotes"),
        ("a,b\n1,2\nf\xfcnf,3\n".encode("latin-1"), "line 3, character 2: the byte 0xfc is not valid UTF-8; save"),
        (b"\xe9,b\n1,2\n", "line 1, character 1: the byte 0xe9"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "line 2: .* is not valid UTF-16"),
    ],
)
def test_invalid_text_raises(text, match):
    assert_read_raises(text, match)


@pytest.mark.parametrize(
    ("wanted", "match"),
    [
        (
            {"columns": ["width", "weight"]},
            "no column is named 'weight'; the columns are 'name', 'width', 'species'",
        ),
        ({"label": "kind"}, "no column is named 'kind'"),
        (
            {"columns": ["species"]},
            "column 'species' contains text .'setosa'. and cannot be embedded; the numeric columns are 'width', 'l",
        ),
        ({"columns": ["width", "width"]}, "'width' is selected twice"),
        ({"columns": ["width"], "label": "width"}, "'width' is selected twice"),
        ({"columns": []}, "`columns` is empty"),
    ],
)
def test_invalid_column_selection_raises(wanted, match):
    assert_read_raises(FLOWERS, match, **wanted)


def test_errors_name_the_line_across_blocks(monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 16)
    text = "a,b\n" + "1,2\n" * 5000
    assert_read_raises(text + "1,x\n", "line 5002, column 'b': 'x' is not a number")
    assert_read_raises(text.encode() + b"1,\xff\n", "line 5002, character 3: the byte 0xff")
    assert_read_raises("a,b\n1,2\n" + "1,\n" * 20, r"line 3, column 'b'.*\(at least \d+ in all, in \d+ rows and 1 col")
    assert_read_raises("a,b\n" + "1,\n" * 20 + "1,5\n", "column 'b' was not .* empty before line 22.* value is '5'")


def test_missing_unknown_and_truncated_files_raise(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        data.read(tmp_path / "nothing.csv")
    (tmp_path / "t.doc").write_text("1")
    with pytest.raises(ValueError, match=r"unknown suffix; choose from \.csv, "):
        data.read(tmp_path / "t.doc")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(FLOWERS.encode() * 100)[:-20])
    with pytest.raises(ValueError, match="cannot be read as gzip"):
        data.read(tmp_path / "t.csv.gz")


def test_text_streams_raise():
    with pytest.raises(ValueError, match="source must be a path or a file opened in binary mode, got StringIO"):
        data.read(io.StringIO(FLOWERS))

"""Files: tables in every format that is read, and saved methods, with changed, missing or random bytes."""

from __future__ import annotations

import io
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

import equipoise as eq
from equipoise import data

from .values import choose

SAVED = Path(__file__).resolve().parent.parent / "saved_by_0_1_0"
SUFFIXES = (".csv", ".csv", ".csv", ".tsv", ".npy", ".npz", ".mtx", ".parquet", ".feather", ".csv.gz", ".csv.zst")
CELLS = (
    "", "a", "NaN", "nan", "inf", "-inf", "1e400", "1e-400", "9" * 400, "true", "0x1f", '"1"', '"', "ü", " 2", "1;2",
    "null", "1,5", "٣", "=1+1", "\x00", "2024-01-01", "1_000", "+-1", "5e-324", "1e300",
)  # fmt: skip
CHANGES = ("flip", "cut", "insert", "repeat", "zero")
MEMBER_CHANGES = ("flip", "cut", "insert", "drop", "rename", "twice", "zero")


def _draw_changes(rng: np.random.Generator, kinds: tuple[str, ...]) -> list[list[Any]]:
    """Draw up to three changes: what, where (a fraction of the length), and a byte."""
    count = choose(rng, [0, 1, 1, 2, 3])
    return [[choose(rng, kinds), round(float(rng.random()), 4), int(rng.integers(256))] for _ in range(count)]


def draw_read(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a file in some format, changes of its bytes, and arguments of `read`."""
    case: dict[str, Any] = {"suffix": choose(rng, SUFFIXES), "changes": _draw_changes(rng, CHANGES)}
    if case["suffix"] in (".csv", ".tsv"):
        rows, columns = choose(rng, [0, 1, 2, 5, 9, 50]), choose(rng, [0, 1, 2, 3, 6])
        case["cells"] = [[choose(rng, CELLS) if rng.random() < 0.06 else "1.5" for _ in range(columns)]
                         for _ in range(rows)]  # fmt: skip
        if rows and rng.random() < 0.2:
            case["cells"][-1].append("7")
        if rng.random() < 0.5:
            case["header"] = [choose(rng, ["a", "b", "c", "a", "", "1", "y1", "class"]) for _ in range(columns)]
        case["encoding"] = choose(rng, ["utf-8", "utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-32"])
        if rng.random() < 0.6:
            case["changes"] = []
    if rng.random() < 0.3:
        case["arguments"] = {choose(rng, ["label", "id"]): choose(rng, ["a", "b", "", "1", "column 1", 5, None])}
    elif rng.random() < 0.1:
        case["arguments"] = {"columns": choose(rng, [["a"], [], ["a", "a"], ["nothing"], "a", 3])}
    return case


def run_read(case: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Read the file of a case and return the table."""
    content = changed(_table_file(case), case["changes"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"table{case['suffix']}")
        path.write_bytes(content)
        found = data.read(path, **case.get("arguments", {}))
        X = found.X.toarray() if sparse.issparse(found.X) else np.asarray(found.X)
        return [("X", X, (len(found.X) if not sparse.issparse(found.X) else X.shape[0], X.shape[1]))]


def table_text(case: dict[str, Any], separator: str = ",") -> bytes:
    """Return the CSV file that a case describes."""
    lines = [case["header"]] if "header" in case else []
    text = "\n".join(separator.join(line) for line in [*lines, *case["cells"]]) + "\n"
    return text.encode(case.get("encoding", "utf-8"), errors="replace")


def _table_file(case: dict[str, Any]) -> bytes:
    if case["suffix"] in (".csv", ".tsv"):
        return table_text(case, "\t" if case["suffix"] == ".tsv" else ",")
    return _valid_file(case["suffix"])


@cache
def _valid_file(suffix: str) -> bytes:
    """Return a small valid file of a format."""
    X = np.arange(24.0).reshape(8, 3)
    written = io.BytesIO()
    if suffix == ".npy":
        np.save(written, X)
    elif suffix == ".npz":
        np.savez_compressed(written, X=X, y=np.arange(8))
    elif suffix == ".mtx":
        scipy_io.mmwrite(written, sparse.csr_matrix(X))
    else:
        return _arrow_file(suffix, X)
    return written.getvalue()


def _arrow_file(suffix: str, X: np.ndarray) -> bytes:
    import pyarrow
    from pyarrow import feather, parquet

    written = io.BytesIO()
    if suffix.startswith(".csv."):
        sink = pyarrow.BufferOutputStream()
        with pyarrow.CompressedOutputStream(sink, {"gz": "gzip", "zst": "zstd"}[suffix[5:]]) as stream:
            stream.write(b"a,b\n1,2\n3,4\n5,7\n")
        return sink.getvalue().to_pybytes()
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": list("abcdefgh")})
    (parquet.write_table if suffix == ".parquet" else feather.write_feather)(table, written)
    return written.getvalue()


def changed(content: bytes, changes: list[list[Any]]) -> bytes:
    """Return the content with changes [kind, place as a fraction, byte] applied one after the other."""
    buffer = bytearray(content)
    for kind, place, byte in changes:
        at = min(int(place * len(buffer)), max(0, len(buffer) - 1))
        if kind == "flip" and buffer:
            buffer[at] = byte
        elif kind == "cut":
            del buffer[at:]
        elif kind == "insert":
            buffer[at:at] = bytes([byte]) * (1 + byte % 7)
        elif kind == "repeat":
            buffer[at:at] = buffer[at : at + 100]
        elif kind == "zero":
            buffer[at : at + 8] = bytes(len(buffer[at : at + 8]))
    return bytes(buffer)


def draw_load(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a saved method or checkpoint and changes: of its bytes, or of one of the files in the archive."""
    case: dict[str, Any] = {"file": choose(rng, [path.name for path in sorted(SAVED.glob("*.eqz"))])}
    if rng.random() < 0.5:
        case["changes"] = _draw_changes(rng, CHANGES)
    else:
        case["member"] = round(float(rng.random()), 4)
        case["member_changes"] = _draw_changes(rng, MEMBER_CHANGES)
    return case


def run_load(case: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Load the changed file and place new rows; only an unchanged file must give finite results."""
    content = (SAVED / case["file"]).read_bytes()
    if "member" in case:
        content = _with_changed_member(content, case["member"], case["member_changes"])
    content = changed(content, case.get("changes", []))
    new = np.loadtxt(SAVED / "new.csv", delimiter=",", skiprows=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "method.eqz")
        path.write_bytes(content)
        method = eq.load(path)
        method = getattr(method, "method", method)
        Y = method.transform(new) if hasattr(method, "transform") else method.embedding_
    untouched = not case.get("changes") and not case.get("member_changes")
    return [("transform", Y, None)] if untouched else []


def _with_changed_member(content: bytes, member: float, changes: list[list[Any]]) -> bytes:
    """Return the archive with one of its files changed; its checksums are valid again."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(written, "w") as target:
        names = archive.namelist()
        chosen = names[min(int(member * len(names)), len(names) - 1)]  # a member of 0.99999 is rounded to 1
        kinds = {change[0] for change in changes}
        for name in names:
            part = archive.read(name)
            if name == chosen:
                if "drop" in kinds:
                    continue
                part = changed(part, changes)
                name = f"../{name}" if "rename" in kinds else name
                if "twice" in kinds:
                    target.writestr(f"{name}.copy", part)
            target.writestr(name, part)
    return written.getvalue()

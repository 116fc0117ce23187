"""Write and read arrays and plain values in one file: a zip of .npy arrays and one JSON file.

Values are None, booleans, numbers, strings, lists, tuples, dicts with string keys, arrays, CSR matrices, and objects
that the caller can describe and rebuild. Reading a file executes no code. Nothing is compressed, so that a small file
cannot expand to a large one.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zipfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from .._atomic import atomic_write
from .._types import Array, Matrix
from .._version import __version__
from ..arrays.csr import make_csr

CONTENT = "content.json"
MAX_JSON = 2**26  # bytes, 64 MiB: enough for the names of a million columns; chosen
MAX_HEADER = 10_000  # bytes of an array's header, as in NumPy
MAX_OBJECTS = 1000  # objects in a file; a fitted method has about ten
KINDS = "biufU"  # kinds of NumPy dtypes that an array may have
NAME_OFFSET = 30  # bytes before the name of the first entry of a zip
EPOCH = (1980, 1, 1, 0, 0, 0)  # earliest date of a zip; constant, so that equal content gives equal bytes

Describe = Callable[[Any], tuple[str, Any] | None]  # an object → its name and state; None if unknown
Make = Callable[[str, Any], Any]  # name and state → the object
Accept = Callable[[str | Path, dict[str, Any]], None]  # raises Refused if the file cannot be used


def cached_names(kind: type[Any]) -> set[str]:
    """Return the names of the cached properties of a class, which are recomputed instead of saved."""
    return {name for cls in kind.__mro__ for name, member in vars(cls).items() if isinstance(member, cached_property)}


class Unstorable(TypeError):
    """Raised for a value, such as a function, that cannot be saved as plain values and arrays."""


def version() -> str:
    """Return the version of equipoise."""
    return __version__


def write(path: str | Path, about: dict[str, Any], content: Any, describe: Describe = lambda value: None) -> None:
    """Write `content` to a file atomically, together with the plain values `about`, which describe the file.

    For each value that is neither plain nor an array, `describe` returns a name and a state that can be written, or
    None if the value cannot be saved.
    """
    writer = _Writer(describe)
    text = json.dumps({**about, "content": writer.plain(content)}, allow_nan=False).encode()
    if len(text) > MAX_JSON:
        raise ValueError(
            f"{path}: column names and other values outside arrays take {len(text)} bytes, but at most {MAX_JSON}"
            " can be saved; use shorter column names, or fit an array without names"
        )
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(CONTENT, EPOCH), text)
        for number, array in enumerate(writer.arrays):
            with archive.open(zipfile.ZipInfo(f"{number}.npy", EPOCH), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def is_archive(path: str | Path) -> bool:
    """Return whether a file looks like one written by `write`: a zip whose first entry is the JSON file."""
    name = CONTENT.encode()
    with open(path, "rb") as file:
        head = file.read(NAME_OFFSET + len(name))
    return head.startswith(b"PK\x03\x04") and head[NAME_OFFSET:] == name


def check(value: Any, describe: Describe) -> None:
    """Raise Unstorable if `write` with this `describe` cannot write a value."""
    _Writer(describe).plain(value)


class _Writer:
    """Converts values to JSON and collects the arrays among them; shared arrays are written once."""

    def __init__(self, describe: Describe):
        self.describe = describe
        self.arrays: list[Array] = []
        self._numbers: dict[int, int] = {}
        self._references: list[Any] = []  # keep the arrays alive, so that their ids stay unique

    def plain(self, value: Any) -> Any:
        if value is None or isinstance(value, str | bool):
            return value
        if isinstance(value, int | float) and not isinstance(value, np.generic):
            return value if isinstance(value, int) or np.isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.plain(item) for item in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self.plain(item) for key, item in value.items()}}
        if isinstance(value, np.generic):
            return {"scalar": self._number(np.asarray(value))}
        if isinstance(value, np.ndarray):
            if value.dtype == object and value.ndim == 1 and all(isinstance(item, str) for item in value):
                return {"names": list(value)}
            return {"array": self._number(value)}
        if sparse.issparse(value):
            M = sparse.csr_matrix(value) if value.format != "csr" else value
            parts = (M.data[: M.nnz], M.indices[: M.nnz], M.indptr)
            full = (M.data, M.indices, M.indptr)  # the same arrays, unless SciPy has allocated more memory than it uses
            stored = [self._number(b if len(a) == len(b) else a) for a, b in zip(parts, full, strict=True)]
            return {"csr": [*map(int, M.shape), *stored]}
        described = self.describe(value)
        if described is None:
            kind = f"{type(value).__name__} {getattr(value, '__name__', '')}".rstrip()
            raise Unstorable(f"{kind} is not a plain value, an array or an object of equipoise")
        name, state = described
        return {"object": name, "state": self.plain(state)}

    def _number(self, array: Array) -> int:
        if array.dtype.kind not in KINDS:
            raise Unstorable(f"an array of dtype {array.dtype} does not contain real numbers, booleans or text")
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self._references.append(array)
            self.arrays.append(np.asarray(array))
        return self._numbers[id(array)]


def read(path: str | Path, accept: Accept, make: Make | None = None) -> Any:
    """Return the content of a file written by `write`.

    First `accept` is called with the path and the dict `about` from the file; `accept` raises Refused for a valid
    file that cannot be used. A file that is damaged, or that `write` did not write, raises ValueError. `make` returns
    the object with a given name and state; without `make`, a file that contains objects raises ValueError.
    """
    with _BoundedReader(io.FileIO(path)) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                reader = _Reader(archive, file.size, make or _unknown)
                about = reader.json()
                accept(path, about)
                return reader.value(about.get("content"))
        except Refused:
            raise
        except MemoryError as error:
            raise MemoryError(f"not enough memory to read {path}: {error}; free some memory and try again") from None
        except Exception as error:  # decoders raise many kinds of errors for damaged files
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"{path} is damaged or is not an equipoise file: {reason}; restore it from a copy or"
                " choose another file"
            ) from None


class Refused(ValueError):
    """Raised for a valid file that cannot be used, such as one of another kind, run or version."""


def _unknown(name: str, state: Any) -> NoReturn:
    raise ValueError(f"the file contains an object ({name[:80]!r}), but only arrays and plain values are expected")


class _BoundedReader(io.BufferedReader):
    """A file whose `read` never requests more bytes than the file has, even if a damaged zip declares more."""

    def __init__(self, raw: io.FileIO):
        super().__init__(raw)
        self.size = os.fstat(raw.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(-1 if size is None else min(size, self.size))


class _Reader:
    """Checks and reads the entries of a zip; shared arrays are read once."""

    def __init__(self, archive: zipfile.ZipFile, size: int, make: Make):
        self.archive, self.make = archive, make
        entries = archive.infolist()
        self.entries = {entry.filename: entry for entry in entries}
        if len(self.entries) < len(entries):
            raise ValueError("two entries of the file have the same name")
        for entry in entries:
            if not (entry.filename == CONTENT or re.fullmatch(r"(0|[1-9]\d*)\.npy", entry.filename)):
                raise ValueError(f"the file contains an unexpected entry, {entry.filename[:80]!r}")
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                raise ValueError(f"the entry {entry.filename} is compressed or encrypted")
        if sum(entry.file_size for entry in entries) > size:
            raise ValueError("the entries together are larger than the file that contains them")
        if CONTENT not in self.entries:
            raise ValueError(f"the file has no {CONTENT}")
        self._arrays: dict[int, Array] = {}
        self._matrices: dict[tuple[int, ...], Matrix] = {}
        self._n_objects = 0

    def json(self) -> dict[str, Any]:
        if self.entries[CONTENT].file_size > MAX_JSON:
            raise ValueError(f"{CONTENT} is larger than {MAX_JSON} bytes")
        about = json.loads(self.archive.read(CONTENT))
        if not isinstance(about, dict):
            raise ValueError(f"{CONTENT} is not a JSON object")
        return about

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        match plain:
            case {"object": str(name), "state": state}:
                self._n_objects += 1
                if self._n_objects > MAX_OBJECTS:
                    raise ValueError(f"the file contains more than {MAX_OBJECTS} objects")
                return self.make(name, self.value(state))
            case {"float": "nan" | "inf" | "-inf" as text}:
                return float(text)
            case {"tuple": list(items)}:
                return tuple(self.value(item) for item in items)
            case {"dict": dict(items)}:
                return {key: self.value(item) for key, item in items.items()}
            case {"scalar": int(number)}:
                return self._array(number)[()]
            case {"names": list(names)} if all(isinstance(name, str) for name in names):
                return np.array(names, dtype=object)
            case {"array": int(number)}:
                return self._array(number)
            case {"csr": [int(rows), int(columns), int(data), int(indices), int(indptr)]}:
                return self._csr(rows, columns, data, indices, indptr)
        raise ValueError(f"{CONTENT} contains a value of unknown kind, {', '.join(plain)[:80]!r}")

    def _array(self, number: int) -> Array:
        if number not in self._arrays:
            entry = self.entries.get(f"{number}.npy")
            if entry is None:
                raise ValueError(f"the file has no {number}.npy")
            with self.archive.open(entry) as stream:
                declared = _declared_size(stream)
                if declared != entry.file_size:
                    raise ValueError(
                        f"{entry.filename} has {entry.file_size} bytes, but its header declares {declared}"
                    )
            with self.archive.open(entry) as stream:
                self._arrays[number] = np.lib.format.read_array(stream, allow_pickle=False, max_header_size=MAX_HEADER)
        return self._arrays[number]

    def _csr(self, *key: int) -> Matrix:
        if key not in self._matrices:
            if len(self._matrices) == len(self.entries):
                raise ValueError("the file contains more sparse matrices than arrays")
            rows, columns = key[:2]
            data, indices, indptr = map(self._array, key[2:])
            consistent = (
                all(part.ndim == 1 for part in (data, indices, indptr))
                and all(part.dtype.kind in "iu" for part in (indices, indptr))
                and len(indptr) == rows + 1
                and len(indices) == len(data) == int(indptr[-1])
                and int(indptr[0]) == 0
                and bool((np.diff(indptr) >= 0).all())
                and (not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < columns))
            )
            if not consistent:
                raise ValueError("the data, indices and indptr of a sparse matrix are inconsistent")
            self._matrices[key] = make_csr(data, indices, indptr, (rows, columns))
        return self._matrices[key]


def _declared_size(stream: Any) -> int:
    """Return the size in bytes of a .npy entry according to its header, before memory is allocated for it."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"unsupported version {version} of the .npy format")
    try:
        shape, _, dtype = readers[version](stream, max_header_size=MAX_HEADER)
    except struct.error as error:
        raise ValueError("an array has no header") from error
    except MemoryError as error:  # raised by Python's parser for deeply nested text
        raise ValueError("the header of an array is not valid") from error
    if dtype.kind not in KINDS:
        raise ValueError(f"unsupported array of dtype {dtype}")
    count = 1
    for side in shape:
        count *= side
    if not dtype.itemsize and count:  # NumPy would allocate a character for each empty string
        raise ValueError(f"unsupported array of dtype {dtype}")
    return int(stream.tell()) + count * int(dtype.itemsize)

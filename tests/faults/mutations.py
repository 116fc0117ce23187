"""Damaged files: bytes changed at random, and well-formed archives with hostile content."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator
Entries = list[tuple[str, bytes]]
CONTENT = "content.json"
BOMB = 2**28  # bytes of a compressed entry after decompression


class Payload:
    """An object whose unpickling creates a file."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


# Bytes of the file, without regard to its structure.


def flip_bits(data: bytes, rng: Rng) -> bytes:
    out = bytearray(data)
    for place in rng.integers(0, len(out), rng.integers(1, 6)):
        out[place] ^= 1 << rng.integers(8)
    return bytes(out)


def flip_in_directory(data: bytes, rng: Rng) -> bytes:
    """Change bytes of the central directory, at the end: sizes, offsets, names, flags."""
    out = bytearray(data)
    start = max(data.find(b"PK\x01\x02"), 0)
    for place in rng.integers(start, len(out), rng.integers(1, 4)):
        out[place] = rng.integers(256)
    return bytes(out)


def truncate(data: bytes, rng: Rng) -> bytes:
    return data[: rng.integers(len(data))]


def insert(data: bytes, rng: Rng) -> bytes:
    at = rng.integers(len(data) + 1)
    return data[:at] + rng.bytes(int(rng.integers(1, 200))) + data[at:]


def delete(data: bytes, rng: Rng) -> bytes:
    a, b = sorted(rng.integers(0, len(data), 2))
    return data[:a] + data[min(b, a + 500) :]


def swap_blocks(data: bytes, rng: Rng) -> bytes:
    a, b, c = sorted(rng.integers(0, len(data), 3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def zero_block(data: bytes, rng: Rng) -> bytes:
    a = rng.integers(len(data))
    n = int(rng.integers(1, 4096))
    return data[:a] + bytes(len(data[a : a + n])) + data[a + n :]


def repeat_file(data: bytes, rng: Rng) -> bytes:
    return data + data


# Entries of the archive: names, order, arrays.


def swap_entries(entries: Entries, rng: Rng, marker: Path) -> Entries:
    i, j = rng.integers(0, len(entries), 2)
    out = list(entries)
    out[i], out[j] = (out[i][0], out[j][1]), (out[j][0], out[i][1])
    return out


def rename_entry(entries: Entries, rng: Rng, marker: Path) -> Entries:
    names = ["../x.npy", "/etc/x.npy", "0.npy", "-1.npy", "00.npy", "content.json", "a" * 60000, "\0.npy", "1.NPY", ""]
    i = rng.integers(len(entries))
    return [*entries[:i], (str(rng.choice(names)), entries[i][1]), *entries[i + 1 :]]


def add_entry(entries: Entries, rng: Rng, marker: Path) -> Entries:
    name = str(rng.choice(["../../x", "C:\\x", "99999999.npy", "con", "0.npy/", "data.pkl", "x" * 300]))
    return [*entries, (name, pickle.dumps(Payload(marker)))]


def drop_entry(entries: Entries, rng: Rng, marker: Path) -> Entries:
    i = rng.integers(len(entries))
    return [*entries[:i], *entries[i + 1 :]]


def repeat_entry(entries: Entries, rng: Rng, marker: Path) -> Entries:
    return [*entries, entries[rng.integers(len(entries))]]


def _replace_array(entries: Entries, rng: Rng, change: Callable[[bytes], bytes]) -> Entries:
    arrays = [i for i, (name, _) in enumerate(entries) if name.endswith(".npy")]
    i = arrays[rng.integers(len(arrays))]
    return [*entries[:i], (entries[i][0], change(entries[i][1])), *entries[i + 1 :]]


def _npy(header: str, body: bytes) -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def pickle_array(entries: Entries, rng: Rng, marker: Path) -> Entries:
    stream = io.BytesIO()
    np.save(stream, np.array([Payload(marker), None], dtype=object), allow_pickle=True)
    return _replace_array(entries, rng, lambda old: stream.getvalue())


def pure_pickle(entries: Entries, rng: Rng, marker: Path) -> Entries:
    return _replace_array(entries, rng, lambda old: pickle.dumps(Payload(marker)))


def declare_shape(entries: Entries, rng: Rng, marker: Path) -> Entries:
    """Declare terabytes, overflowing, negative or absurd shapes and dtypes."""
    shapes = [(10**12,), (2**40, 2**40), (2**32, 2**32), (2**63,), (0, 10**18), (-1,), (-3, -8), (10**30,), (1,) * 65]
    dtypes = ["<f8", "<f4", "<i4", "<U0", "<U1", "|V8", "|O", "<U2000000000", "|b1", ">f8", "<c16", "<M8[s]", "|S0"]
    shape, dtype = shapes[rng.integers(len(shapes))], dtypes[rng.integers(len(dtypes))]
    header = f"{{'descr': '{dtype}', 'fortran_order': {bool(rng.integers(2))}, 'shape': {shape}, }}"
    return _replace_array(entries, rng, lambda old: _npy(header, old[128:] if rng.integers(2) else b""))


def bad_header(entries: Entries, rng: Rng, marker: Path) -> Entries:
    headers = [
        "-" * 9000 + "1",
        "(" * 9000,
        "[" * 150 + "]" * 150,
        "{'descr': [('a', '<f8', 10**9)]}",
        "__import__('os')",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1" + "0" * 5000 + ",)}",
        "\0" * 100,
        "1" * 9999,
    ]
    return _replace_array(entries, rng, lambda old: _npy(headers[rng.integers(len(headers))], old[128:]))


def other_array(entries: Entries, rng: Rng, marker: Path) -> Entries:
    """Replace an array by a valid one of another shape or dtype, or with other values."""

    def change(old: bytes) -> bytes:
        A = np.load(io.BytesIO(old), allow_pickle=False)
        with np.errstate(all="ignore"):
            B = [A[:-1] if A.ndim else A, A.astype(str), A.reshape(-1), A[None], A * 0, A.astype(np.int8), A[..., None],
                 np.full_like(A, -1) if A.dtype.kind in "if" else A, np.full(A.shape, np.nan), np.full(A.shape, 1e300),
                 np.asfortranarray(A), A.astype(A.dtype.newbyteorder()), np.zeros((0, 0)),
                 np.full(A.shape, 2**31 - 1), np.ones(A.shape, int)]  # fmt: skip
        stream = io.BytesIO()
        np.save(stream, B[rng.integers(len(B))])
        return stream.getvalue()

    return _replace_array(entries, rng, change)


# The JSON entry.


def _nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(node for key, child in children for node in _nodes(child, (*path, key)))]


VALUES: list[Callable[[], Any]] = [
    lambda: None, lambda: True, lambda: -1, lambda: 0, lambda: 10**400, lambda: 1e308, lambda: "x" * 10**5, lambda: [],
    lambda: {}, lambda: {"array": 0}, lambda: {"array": 10**9}, lambda: {"array": -1}, lambda: {"scalar": 0},
    lambda: {"float": "nan"}, lambda: {"float": "-inf"}, lambda: {"float": "__import__('os')"},
    lambda: {"tuple": [1, 2]}, lambda: {"dict": {}}, lambda: {"names": ["a"] * 10}, lambda: {"names": [1]},
    lambda: {"csr": [10**12, 10**12, 0, 1, 2]}, lambda: {"csr": [-1, 2, 0, 0, 0]}, lambda: {"csr": []},
    lambda: {"object": "os.system", "state": "true"}, lambda: {"object": "kernels.StudentT", "state": {"dict": {}}},
    lambda: {"object": "kernels.Gaussian", "state": {"dict": {}}}, lambda: {"object": "kernels.Gaussian", "state": 1},
    lambda: {"object": "engines.torch.Torch", "state": {"dict": {}}}, lambda: {"object": "gram.Inner", "state": 0},
    lambda: {"object": "placement.Placement", "state": 1}, lambda: {"object": "optimize.Momentum", "state": None},
    lambda: {"object": "engines.grid.Grid", "state": {"dict": {"n_threads": 10**9, "tol": 0, "state": []}}},
    lambda: 2**63, lambda: 10**4000, lambda: 0.5,
]  # fmt: skip
WIDE: list[Callable[[], Any]] = [
    lambda: [{"object": "kernels.Gaussian", "state": {"dict": {}}}] * 20000,
    lambda: [{"array": 0}] * 20000,
    lambda: [{"csr": [i, i, 0, 1, 2]} for i in range(20000)],
]


def change_json(entries: Entries, rng: Rng, marker: Path) -> Entries:
    """Replace one to three values of the JSON entry by others."""
    about = json.loads(dict(entries)[CONTENT])
    count = rng.integers(1, 4)
    for number in range(count):
        nodes = [node for node in _nodes(about) if node]
        *path, key = nodes[rng.integers(len(nodes))]
        parent = about
        for step in path:
            parent = parent[step]
        if rng.integers(8) == 0 and isinstance(parent, dict):
            parent[str(rng.choice(["__class__", "transform", "callbacks", "x_", "_data", "fit"]))] = parent.pop(key)
        else:
            values = [*VALUES, *WIDE] if number == count - 1 else VALUES  # a wide value within another has no end
            parent[key] = values[rng.integers(len(values))]()
    return _with_content(entries, json.dumps(about).encode())


def raw_json(entries: Entries, rng: Rng, marker: Path) -> Entries:
    """Replace the JSON entry: deep nesting, long numbers, no JSON, wrong text."""
    texts = [b"[" * 10**6, b'{"a":' * 10**5, b"1" * 10**6, b'{"kind": 1e99999}', b"", b"null", b"[]", b"\xff\xfe",
             b'{"format": 1' + b"0" * 5000 + b"}", b"NaN", b'{"kind": "method", "format": 1, "method": "TSNE"}',
             b'{"kind": "checkpoint", "format": 1, "run": {}}', b'"' + b"\\ud800" * 1000 + b'"']  # fmt: skip
    return _with_content(entries, texts[rng.integers(len(texts))])


def deep_json(entries: Entries, rng: Rng, marker: Path) -> Entries:
    """Nest the content: Python's parser accepts what its recursion limit allows."""
    about = json.loads(dict(entries)[CONTENT])
    deep = json.dumps(about["content"])
    depth = int(rng.choice([10, 200, 900, 3000]))
    about["content"] = "@"
    forms = ["[{}]", '{{"tuple": [{}]}}', '{{"dict": {{"a": {}}}}}']
    form = forms[rng.integers(len(forms))]
    for _ in range(depth):
        deep = form.format(deep) if len(deep) < 10**6 else deep
    return _with_content(entries, json.dumps(about).replace('"@"', deep).encode())


def _with_content(entries: Entries, text: bytes) -> Entries:
    return [(name, text if name == CONTENT else data) for name, data in entries]


BYTES = [flip_bits, flip_in_directory, truncate, insert, delete, swap_blocks, zero_block, repeat_file]
ENTRIES = [swap_entries, rename_entry, add_entry, drop_entry, repeat_entry, pickle_array, pure_pickle, declare_shape]
ENTRIES += [bad_header, other_array, other_array]
JSON = [change_json, change_json, change_json, raw_json, deep_json]


@cache
def _bomb() -> bytes:
    stream = io.BytesIO()
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({BOMB // 8},), }}"
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.npy", _npy(header, bytes(BOMB)))
        archive.writestr(CONTENT, b'{"kind": "method", "format": 1, "method": "PCA", "content": {"array": 0}}')
    return stream.getvalue()


def mutate(data: bytes, rng: Rng, marker: Path) -> tuple[str, bytes, bool]:
    """Return the name of a mutation, the damaged file, and whether its content must be refused or be the same."""
    kind = rng.random()
    if kind < 0.01:
        return "zip_bomb", _bomb(), False
    if kind < 0.4:
        change = BYTES[rng.integers(len(BYTES))]
        return change.__name__, change(data, rng), True
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    changes = [*ENTRIES, *JSON] if any(name == CONTENT for name, _ in entries) else ENTRIES
    change_entries = changes[rng.integers(len(changes))]
    stream = io.BytesIO()
    compression = zipfile.ZIP_DEFLATED if rng.random() < 0.03 else zipfile.ZIP_STORED
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore")  # names that occur twice
        for name, content in change_entries(entries, rng, marker):
            archive.writestr(zipfile.ZipInfo(name or "x"), content, compression)
    return change_entries.__name__, stream.getvalue(), False

"""Read a whole HDF5 file and discard the data, as a separate process: if that crashes, the file is damaged."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import h5py

CELLS = 1 << 20  # values read at a time, 8 MB; constant, because this program does not import the package


def read_all(item: Any, visited: set[tuple[int, int]]) -> None:
    """Read the attributes and values of a group or array and of every item below it, each once, ignoring errors."""
    with suppress(Exception):  # the real reader raises errors again; only crashes matter here
        for name in item.attrs:
            with suppress(Exception):
                item.attrs[name]
    if isinstance(item, h5py.Dataset):
        with suppress(Exception):
            read(item)
    if isinstance(item, h5py.Group):
        for name in item:
            with suppress(Exception):
                child = item[name]
                info = h5py.h5o.get_info(child.id)
                address = (info.fileno, info.addr)  # a link may lead into another file
                if address not in visited:
                    visited.add(address)
                    read_all(child, visited)


def read(array: Any) -> None:
    """Read an array in blocks of rows, and discard them."""
    if not array.shape:
        array[()]
        return
    rows = max(1, CELLS * array.shape[0] // max(1, array.size))
    for start in range(0, array.shape[0], rows):
        array[start : start + rows]


if __name__ == "__main__":
    with suppress(Exception), h5py.File(sys.argv[-1], "r") as file:
        read_all(file, set())

"""Program that reads a whole HDF5 file and keeps nothing: the file is damaged if this process crashes."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import h5py

CELLS = 1 << 20  # read at a time


def touch(thing: Any, known: set[tuple[int, int]]) -> None:
    """Read the attributes and values of a group or array and of everything below it, each once, ignoring errors."""
    with suppress(Exception):  # an error is raised again by the real reader; only crashes matter here
        for name in thing.attrs:
            with suppress(Exception):
                thing.attrs[name]
    if isinstance(thing, h5py.Dataset):
        with suppress(Exception):
            read(thing)
    if isinstance(thing, h5py.Group):
        for name in thing:
            with suppress(Exception):
                below = thing[name]
                info = h5py.h5o.get_info(below.id)
                place = (info.fileno, info.addr)  # a link may lead into another file
                if place not in known:
                    known.add(place)
                    touch(below, known)


def read(array: Any) -> None:
    """Read an array in blocks of rows."""
    if not array.shape:
        array[()]
        return
    rows = max(1, CELLS * array.shape[0] // max(1, array.size))
    for start in range(0, array.shape[0], rows):
        array[start : start + rows]


if __name__ == "__main__":
    with suppress(Exception), h5py.File(sys.argv[-1], "r") as file:
        touch(file, set())

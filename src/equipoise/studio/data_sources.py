"""The data sets that a studio can open: bundled ones, toy shapes, the user's data, and files in its folder."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from .._atomic import atomic_write
from ..data import Dataset, check_table, load, read
from ..data.catalogue import BUNDLED
from ..data.toys import TOYS

SUFFIXES = (".csv", ".npy")
GIVEN = "given:"


class DataSources:
    """The data sets of a studio by name: `named:digits`, `given:` or `file:table.csv`.

    Parameters
    ----------
    folder : Path
        Folder with data files and uploads; files outside it cannot be opened.
    limit : int
        Maximum size of a file in bytes.
    given : Dataset, optional
        The data set that the studio was started with.
    """

    def __init__(self, folder: Path, limit: int, given: Dataset | None = None):
        self.folder, self.limit, self.given = folder.resolve(), limit, given

    @property
    def first(self) -> str:
        """Name of the data set that is opened first."""
        return "named:digits" if self.given is None else GIVEN

    def names(self) -> dict[str, list[tuple[str, str]]]:
        """Return the names and titles of all data sets, by kind."""
        files = sorted(path.name for path in self.folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
        kinds = {
            "Your data": [] if self.given is None else [(GIVEN, self.given.name)],
            "Files": [(f"file:{name}", name) for name in files],
            "Real data": [(f"named:{name}", name) for name in BUNDLED],
            "Toy shapes": [(f"named:{name}", name.replace("_", " ")) for name in TOYS],
        }
        return {kind: names for kind, names in kinds.items() if names}

    def load(self, name: str) -> Dataset:
        """Return the data set called `name`; raise ValueError if it cannot be opened."""
        kind, _, rest = name.partition(":")
        if kind == "given":
            if self.given is None:
                raise ValueError("this studio was started without data; choose a data set, or upload a table")
            return self.given
        if kind == "named":
            return load(rest)
        if kind != "file":
            raise ValueError(f"data must be named:NAME, file:NAME or given:, got {name[:60]!r}")
        path = self.path(rest)
        if not path.is_file():
            raise ValueError(f"the file {rest[:60]!r} does not exist in this studio; upload it again")
        if path.stat().st_size > self.limit:
            raise ValueError(f"{path.name} exceeds the limit of {format_size(self.limit)}")
        return read_table(path)

    def path(self, name: str) -> Path:
        """Return the path of a file in the folder; raise ValueError for paths outside it."""
        if not name or "\0" in name or PurePosixPath(name).is_absolute() or "\\" in name:
            raise ValueError(f"{name[:60]!r} is not a file name")
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise ValueError(f"{name[:60]!r} is outside the studio's folder")
        if path.suffix not in SUFFIXES:
            raise ValueError(f"unknown format {path.suffix or name[:60]!r}; upload a {' or '.join(SUFFIXES)} file")
        return path

    def store(self, name: str, content: bytes) -> str:
        """Check an uploaded table, store it in the folder, and return its name as a data set."""
        if len(content) > self.limit:
            raise ValueError(f"the file exceeds the limit of {format_size(self.limit)}")
        plain = re.sub(r"[^\w.-]+", "_", PurePosixPath(name.replace("\\", "/")).name).lstrip(".")
        stem, dot, suffix = plain.rpartition(".")
        # The hash gives equal content the same name, so that links keep working, and different content different names.
        stored = f"{stem[:60]}-{hashlib.sha256(content).hexdigest()[:8]}{dot}{suffix.lower()}"
        path = self.path(stored)
        with atomic_write(path) as file:
            file.write(content)
        try:
            read_table(path)
        except Exception:
            path.unlink()
            raise
        return f"file:{stored}"


def public_message(error: BaseException) -> str:
    """Return the message of an error without paths, which users of the page should not see."""
    message = error.strerror if isinstance(error, OSError) else str(error)
    return message or type(error).__name__


def format_size(size: int) -> str:
    """Return a number of bytes in MB or kB."""
    return f"{size / 2**20:.0f} MB" if size >= 2**20 else f"{size / 2**10:.0f} kB"


def read_table(path: Path) -> Dataset:
    """Read a .npy or .csv file; the last text column of a .csv file gives the classes."""
    try:
        dataset = read(path)
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), path.name)) from None  # hides the folder
    dataset = replace(dataset, X=check_table(dataset.X))
    text = [name for name, values in dataset.extra.items() if values.dtype.kind not in "biuf"]
    if not text:
        return dataset
    classes, labels = np.unique(dataset.extra[text[-1]].astype(str), return_inverse=True)
    return replace(dataset, labels=labels, classes=tuple(map(str, classes)))

"""The tables that a studio may open: bundled sets, toy shapes, the one it was given, and files of its own folder."""

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


class Tables:
    """Names to data sets. A name is `named:digits`, `given:` or `file:table.csv`, the last inside `folder` alone.

    Parameters
    ----------
    folder : where files are opened and uploads are kept
    limit : bytes of a file at most
    given : the data set that the studio was started with
    """

    def __init__(self, folder: Path, limit: int, given: Dataset | None = None):
        self.folder, self.limit, self.given = folder.resolve(), limit, given

    @property
    def first(self) -> str:
        return "named:digits" if self.given is None else GIVEN

    def names(self) -> dict[str, list[tuple[str, str]]]:
        """Return every name with a title, by kind."""
        files = sorted(path.name for path in self.folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
        kinds = {
            "Given": [] if self.given is None else [(GIVEN, self.given.name)],
            "Files": [(f"file:{name}", name) for name in files],
            "Real data": [(f"named:{name}", name) for name in BUNDLED],
            "Toy shapes": [(f"named:{name}", name.replace("_", " ")) for name in TOYS],
        }
        return {kind: names for kind, names in kinds.items() if names}

    def load(self, name: str) -> Dataset:
        """Return the data set of a name, or say why not."""
        kind, _, rest = name.partition(":")
        if kind == "given":
            if self.given is None:
                raise ValueError("this studio was started without data of its own; choose some, or upload a table")
            return self.given
        if kind == "named":
            return load(rest)
        if kind != "file":
            raise ValueError(f"data must be named:NAME, file:NAME or given:, got {name[:60]!r}")
        path = self.path(rest)
        if not path.is_file():
            raise ValueError(f"there is no file {rest[:60]!r} in the folder of this studio; upload it again")
        if path.stat().st_size > self.limit:
            raise ValueError(f"{path.name} is larger than {in_words(self.limit)}, the limit of this studio")
        return read_table(path)

    def path(self, name: str) -> Path:
        """Return the path of a file of the folder; any other is refused."""
        if not name or "\0" in name or PurePosixPath(name).is_absolute() or "\\" in name:
            raise ValueError(f"{name[:60]!r} is no name of a file")
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise ValueError(f"{name[:60]!r} is outside the folder of this studio")
        if path.suffix not in SUFFIXES:
            raise ValueError(f"tables are {' or '.join(SUFFIXES)}, not {path.suffix or name[:60]!r}")
        return path

    def keep(self, name: str, content: bytes) -> str:
        """Check an uploaded table, keep it in the folder, and return its name among `names`."""
        if len(content) > self.limit:
            raise ValueError(f"the file is larger than {in_words(self.limit)}, the limit of this studio")
        plain = re.sub(r"[^\w.-]+", "_", PurePosixPath(name.replace("\\", "/")).name).lstrip(".")
        stem, dot, suffix = plain.rpartition(".")
        # The same content always gets the same name, so that links lead to it; other content never does.
        kept = f"{stem[:60]}-{hashlib.sha256(content).hexdigest()[:8]}{dot}{suffix.lower()}"
        path = self.path(kept)
        with atomic_write(path) as file:
            file.write(content)
        try:
            read_table(path)
        except Exception:
            path.unlink()
            raise
        return f"file:{kept}"


def in_public(error: BaseException) -> str:
    """Return an error in words, without the paths that the system puts into its own."""
    said = error.strerror if isinstance(error, OSError) else str(error)
    return said or type(error).__name__


def in_words(size: int) -> str:
    return f"{size / 2**20:.0f} MB" if size >= 2**20 else f"{size / 2**10:.0f} kB"


def read_table(path: Path) -> Dataset:
    """Return the table of a .npy or .csv file; the last column of text in a .csv file names the classes."""
    try:
        dataset = read(path)
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), path.name)) from None  # where it lies is nobody's business
    dataset = replace(dataset, X=check_table(dataset.X))
    text = [name for name, values in dataset.extra.items() if values.dtype.kind not in "biuf"]
    if not text:
        return dataset
    classes, labels = np.unique(dataset.extra[text[-1]].astype(str), return_inverse=True)
    return replace(dataset, labels=labels, classes=tuple(map(str, classes)))

"""The data sets that a studio can open: bundled data sets, toy shapes, the user's data, and files in a folder."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from .._atomic import atomic_write
from ..data import Dataset, check_table, load, read
from ..data.catalogue import BUNDLED
from ..data.read.selection import to_classes
from ..data.toys import TOYS
from ..views.column import Classes, read_column
from .limits import Limits
from .preview import Preview, preview
from .table_choices import TableChoices

SUFFIXES = (".csv", ".tsv", ".npy")
GIVEN, FILE = "given:", "file:"


@dataclass(frozen=True)
class GivenData:
    """The data set that a studio was started with, and the lines of Python that define its table X."""

    dataset: Dataset
    code: str = "# X is the table that was passed to the studio"


class DataSources:
    """Loads the data sets of a studio by name, and stores uploaded files as new data sets.

    A name begins with `named:` for a bundled data set or toy shape, as in `named:digits`, and with `file:` for a file
    in the folder, as in `file:table.csv`. The data set that the studio was started with has the name `given:`.

    Parameters
    ----------
    folder : Path
        Folder with data files and uploads; files outside it cannot be opened.
    limits : Limits
        Maximum sizes of a file and of all uploads.
    given : GivenData, optional
        The data set that the studio was started with.
    """

    def __init__(self, folder: Path, limits: Limits, given: GivenData | None = None):
        self.folder, self.limit, self.given = folder.resolve(), limits.upload, given
        self._total = limits.uploads
        self._uploads: dict[str, tuple[str, int]] = {}  # stored name: name on the user's machine, size
        self._storing = threading.Lock()

    @property
    def first(self) -> str:
        """Name of the data set that is opened first."""
        return "named:digits" if self.given is None else GIVEN

    def names(self, opened: Collection[str] = ()) -> dict[str, list[tuple[str, str]]]:
        """Return a dictionary from kinds of data sets, such as "Files", to their pairs (name, title).

        Uploaded files are listed only if they are among the names in `opened`.
        """
        # The operating system may have deleted the folder if it is temporary.
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        files = sorted(path.name for path in found if path.suffix in SUFFIXES and path.is_file())
        titles = {name: self.title(name) for name in files}
        if len(set(titles.values())) < len(titles):  # uploads of one name but different content
            titles = {name: name for name in files}
        kinds = {
            "Your data": [] if self.given is None else [(GIVEN, self.given.dataset.name)],
            "Files": [
                (f"file:{name}", titles[name])
                for name in files
                if name not in self._uploads or f"file:{name}" in opened
            ],
            "Real data": [(f"named:{name}", name) for name in BUNDLED],
            "Toy shapes": [(f"named:{name}", name.replace("_", " ")) for name in TOYS],
        }
        return {kind: names for kind, names in kinds.items() if names}

    def title(self, name: str) -> str:
        """Return the name that a file, `file:` + name in the folder, has on the user's machine."""
        stored = name.removeprefix(FILE)
        return self._uploads.get(stored, (stored, 0))[0]

    def load(self, name: str, choices: TableChoices | None = None) -> Dataset:
        """Return the data set called `name`; raise ValueError if it cannot be opened.

        `choices` describe how a file becomes a table; by default its numbers are embedded, and a column of text becomes
        the classes (see `read_table`).
        """
        kind, _, rest = name.partition(":")
        if kind == "given":
            if self.given is None:
                raise ValueError("this studio was started without data; choose a data set, or upload a table")
            return self.given.dataset
        if kind == "named":
            return load(rest)
        if kind != "file":
            raise ValueError(f"unknown data set {name[:60]!r}; choose one from the menu of the page")
        path = self._existing(rest)
        with _named(path, title := self.title(rest)):
            dataset = read_table(path) if choices is None else choices.read(path)
        return replace(dataset, name=PurePosixPath(title).stem)

    def preview(self, name: str) -> Preview:
        """Return what the first rows of a file say about its columns."""
        path = self._existing(name.partition(":")[2])
        with _named(path, title := self.title(path.name)):
            return preview(path, title)

    def _existing(self, name: str) -> Path:
        """Return the path of the file `name`; raise ValueError if there is no such file, or if it is too large."""
        path = self.path(name)
        if not path.is_file():
            raise ValueError(f"the file {name[:60]!r} does not exist in this studio; upload it again")
        if path.stat().st_size > self.limit:
            raise ValueError(f"{path.name} exceeds the limit of {format_size(self.limit)}; use fewer rows or columns")
        return path

    def path(self, name: str) -> Path:
        """Return the path of the file `name`; raise ValueError if it is outside the folder or has an unknown format."""
        if not name or "\0" in name or PurePosixPath(name).is_absolute() or "\\" in name:
            raise ValueError(f"{name[:60]!r} is not a file name; choose a file in the studio's folder")
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise ValueError(f"{name[:60]!r} is outside the studio's folder; choose a file inside it")
        _check_format(path.suffix, name)
        return path

    def store(self, name: str, content: bytes) -> str:
        """Check an uploaded table, store it in the folder, and return the name of its data set, `file:` + file name."""
        if len(content) > self.limit:
            raise ValueError(f"the file exceeds the limit of {format_size(self.limit)}; use fewer rows or columns")
        original = PurePosixPath(name.replace("\\", "/")).name
        plain = PurePosixPath(re.sub(r"[^\w.-]+", "_", original).lstrip("."))
        _check_format(plain.suffix.lower(), original)
        # The hash of the content: a file that is uploaded again gets the same name, so that links keep working.
        stored = f"{plain.stem[:60]}-{hashlib.sha256(content).hexdigest()[:8]}{plain.suffix.lower()}"
        path = self.path(stored)
        with self._storing:  # one at a time, because reading a table can need many times its size in memory
            others = sum(size for name, (_, size) in self._uploads.items() if name != stored)
            if others + len(content) > self._total:
                raise ValueError(
                    f"all uploads together would exceed {format_size(self._total)}; restart the studio to upload more"
                )
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(content)
            try:
                with _named(path, original):
                    preview(path, original)
            except BaseException:
                path.unlink()
                raise
            self._uploads[stored] = (original, len(content))
        return f"file:{stored}"

    def code(self, name: str, choices: TableChoices | None = None) -> str:
        """Return Python code that defines the table X of a data set, read with `choices`.

        For an uploaded file, the code contains the original file name, not the name in the folder.
        """
        kind, _, rest = name.partition(":")
        if kind == "given":
            return GivenData.code if self.given is None else self.given.code
        if kind == "file":
            return (choices or TableChoices()).code(self.title(rest))
        return f"X = data.load({rest!r}).X"


def _check_format(suffix: str, name: str) -> None:
    if suffix not in SUFFIXES:
        raise ValueError(
            f"unknown format {suffix or name[:60]!r}; upload a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file"
        )


@contextmanager
def _named(path: Path, title: str) -> Iterator[None]:
    """Name a file in errors as the user does, without its folder."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), title).replace(path.stem, PurePosixPath(title).stem)) from None


def public_message(error: BaseException) -> str:
    """Return the message of an error. The path in an OSError is omitted, because users of the page must not see it."""
    message = error.strerror if isinstance(error, OSError) else str(error)
    return message or type(error).__name__


def format_size(size: int) -> str:
    """Return a size in bytes as text, in MB (2**20 bytes) or kB (2**10 bytes)."""
    return f"{size / 2**20:.0f} MB" if size >= 2**20 else f"{size / 2**10:.0f} kB"


def read_table(path: Path) -> Dataset:
    """Read a data file without choices of the user.

    The labels are the last text column that `read_column` returns as classes and that is not an identifier
    (`Classes.is_identifier`). Without such a column, the labels are those returned by `data.read`, if any.
    """
    dataset = read(path)
    dataset = replace(dataset, X=check_table(dataset.X))
    text = {name: values for name, values in dataset.extra.items() if values.dtype.kind not in "biuf"}
    columns = [read_column(values, len(dataset.X), name) for name, values in text.items()]
    names = [column.name for column in columns if isinstance(column, Classes) and not column.is_identifier]
    if not names:
        return dataset
    labels, classes = to_classes(text[names[-1]])
    return replace(dataset, labels=labels, classes=classes)

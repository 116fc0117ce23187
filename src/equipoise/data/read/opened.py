"""Files as streams of bytes, packed by gzip or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked if its suffix is .gz; a broken archive is a ValueError wherever it shows."""
    if path.suffix.lower() != ".gz":
        with open(path, "rb") as stream:
            yield stream
        return
    try:
        with gzip.open(path) as unpacked:
            yield cast(BinaryIO, unpacked)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} cannot be read as gzip: {error}") from error

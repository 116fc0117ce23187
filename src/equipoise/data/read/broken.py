"""Files that are not what their suffix says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

REASON = 200  # characters of a decoder's own words; some quote the file


@contextmanager
def decoding(source: str, kind: str) -> Iterator[None]:
    """Turn whatever a decoder makes of a broken file into one line that names the file. For calls to decoders alone."""
    try:
        yield
    except Exception as error:  # decoders raise what they like: struct.error, SyntaxError, zlib.error, MemoryError
        words = "".join(c if c.isprintable() else " " for c in str(error)).split()
        reason = " ".join(words)[:REASON] or type(error).__name__
        raise ValueError(f"{source} cannot be read as {kind}: {reason}") from error

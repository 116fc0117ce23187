"""Convert the errors that decoders raise for damaged files to ValueError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

REASON = 200  # maximum characters of a decoder's message, because some quote the file; chosen


@contextmanager
def decoding(source: str, kind: str) -> Iterator[None]:
    """Convert any exception of a decoder to a one-line ValueError that names the file and its format."""
    try:
        yield
    except Exception as error:  # decoders raise struct.error, SyntaxError, zlib.error, MemoryError and more
        words = "".join(c if c.isprintable() else " " for c in str(error)).split()
        reason = " ".join(words)[:REASON] or type(error).__name__
        raise ValueError(f"{source} cannot be read as {kind}: {reason}") from error

"""Errors of decoders for damaged files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

REASON = 200  # characters kept of a decoder's message; some quote the file


@contextmanager
def decoding(source: str, kind: str) -> Iterator[None]:
    """Turn any exception of a decoder into a ValueError of one line that names the file and its format."""
    try:
        yield
    except Exception as error:  # decoders raise struct.error, SyntaxError, zlib.error, MemoryError and more
        words = "".join(c if c.isprintable() else " " for c in str(error)).split()
        reason = " ".join(words)[:REASON] or type(error).__name__
        raise ValueError(f"{source} cannot be read as {kind}: {reason}") from error

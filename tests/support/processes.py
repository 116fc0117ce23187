"""Processes that a process has started, read from /proc."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def children(pid):
    """Return the running processes that a process has started, with those that they started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(text[1]) == pid and text[0] != "Z":
            child = int(status.parent.name)
            found += [child, *children(child)]
    return found


def is_running(pid):
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def naming(word):
    """Return the processes whose command line contains a word, such as the path of a file."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            found += [int(path.parent.name)] * (word.encode() in path.read_bytes())
    return found


def rank_of(pid):
    """Return the rank that `run_ranks` gave to a process; None if it is no rank or has ended."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((int(text.partition(b"=")[2]) for text in variables if text.startswith(b"LOCAL_RANK=")), None)

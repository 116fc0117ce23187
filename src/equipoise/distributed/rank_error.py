"""The error that every rank raises when one of them fails."""

from __future__ import annotations

from typing import Any

UNKNOWN = "unknown"  # the stage of a rank that has named none


class RankError(RuntimeError):
    """A rank failed, was killed, or did not answer within the time limit.

    Parameters
    ----------
    rank : int
        The rank that failed.
    host : str
        The name of its machine.
    stage : str
        What it was doing, see `Group.stage`; "unknown" between stages, or if no other rank knows it.
    cause : str
        The error it raised, or what the other ranks observed.
    """

    def __init__(self, rank: int, host: str, stage: str, cause: str):
        super().__init__(f'rank {rank} (host {host}) failed in "{stage}": {cause}')
        self.rank = rank
        self.host = host
        self.stage = stage
        self.cause = cause

    def __reduce__(self) -> tuple[Any, ...]:
        return RankError, (self.rank, self.host, self.stage, self.cause)


def describe_error(error: BaseException) -> str:
    """Return the class and the message of an error in one line: "MemoryError: ..."."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def name_ranks(ranks: list[int]) -> str:
    """Return "rank 3", "ranks 0, 2", or for more than eight ranks "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 5 more"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return "ranks " + ", ".join(map(str, ranks[:8])) + more

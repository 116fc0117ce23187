"""A thread on each rank that shares signs of life and failures through the store of the process group."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from .rank_error import RankError, name_ranks

BEAT_SECONDS = 0.5
OBSERVED_ROUNDS = 4  # readings of the beats of all ranks before one of them is taken for dead
PATIENCE_SECONDS = 12.0  # for a busy machine, on which several ranks may be silent for a while
GRACE_SECONDS = 5.0  # a rank that fails waits at most so long until the others have read why


@dataclass(frozen=True)
class Beat:
    """A sign of life: its number, and what the rank was doing."""

    number: int
    collective: int  # the number of collectives that the rank has entered
    stage: str


@dataclass
class _Observed:
    beat: Beat
    changes: int = 0  # how often the beat changed while it was observed


class RankMonitor:
    """The signs of life and the failures of all ranks, written to and read from a store.

    Only the thread of the monitor talks to the store, so that a store that does not answer blocks no other thread.

    Parameters
    ----------
    store : torch.distributed.Store
        The store of the process group, hosted by rank 0 or by its launcher.
    rank : int
        The rank of this process.
    hosts : tuple of str
        The name of each rank's machine.
    """

    def __init__(self, store: Any, rank: int, hosts: tuple[str, ...]):
        self._store, self.rank, self.hosts = store, rank, hosts
        self.failure: RankError | None = None
        self._stage, self._collective = "start", 0
        self._to_report: tuple[RankError, int] | None = None
        self._store_error: str | None = None
        self._beats, self._last_round = 0, time.monotonic()
        self._observed: dict[int, _Observed] | None = None
        self._expected, self._seen, self._left, self._stopping = len(hosts), 0, 0, False
        self._wake, self._published = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="equipoise-monitor", daemon=True)
        self._thread.start()

    def enter_stage(self, name: str) -> None:
        """Publish the name of the stage that this rank is in."""
        self._stage = name
        self._wake.set()

    def enter_collective(self) -> None:
        """Note that this rank has entered a collective."""
        self._collective += 1

    def report(self, failure: RankError, survivors: int | None = None) -> RankError:
        """Publish a failure unless another rank was first; return the first failure.

        Rank 0, which may host the store, returns when the others have read it. `survivors` is the number of ranks
        that can, by default all.
        """
        if self.failure is None and self._store_error is None:
            self._to_report = failure, len(self.hosts) if survivors is None else survivors
            self._wake.set()
            self._published.wait(GRACE_SECONDS)
        self.linger()
        return self.failure or failure

    def linger(self) -> None:
        """On rank 0, wait until the other ranks have read the failure, for a few seconds at most."""
        end = time.monotonic() + GRACE_SECONDS
        while self.rank == 0 and self._seen < self._expected and time.monotonic() < end and self._thread.is_alive():
            self._wake.set()
            time.sleep(0.02)

    def find_failure(self, collective: str, error: str, limit: float | None) -> RankError:
        """Find out which rank made a collective fail, report it, and return the error to raise.

        Parameters
        ----------
        collective : str
            The name of the collective.
        error : str
            What the collective raised.
        limit : float or None
            The time limit if it has passed; None if the connection failed.
        """
        self._observed = {}
        begin, first = time.monotonic(), self._beats
        self._wake.set()
        while self.failure is None:
            time.sleep(0.05)
            elapsed = time.monotonic() - begin
            if self._store_error is not None or time.monotonic() - self._last_round > PATIENCE_SECONDS:
                reason = self._store_error or "its store does not answer"
                return self._error(0, f"its process ended, or its machine cannot be reached ({reason})")
            if self._beats - first >= OBSERVED_ROUNDS or elapsed > PATIENCE_SECONDS:
                found = self._judge(collective, error, limit, final=elapsed > PATIENCE_SECONDS)
                if found is not None:
                    return self.report(found, len(self.hosts) - (found.rank != self.rank))
        self.linger()
        return self.failure

    def close(self, timeout: float) -> None:
        """Stop the thread; rank 0, which may host the store, first waits until the others have left or failed."""
        self._stopping = True
        end = time.monotonic() + (timeout if self.failure is None else GRACE_SECONDS)
        while self._thread.is_alive() and time.monotonic() < end:
            self._wake.set()
            self._thread.join(0.05)

    def _judge(self, collective: str, error: str, limit: float | None, final: bool) -> RankError | None:
        """Return whose failure it is, or None if that is not clear yet."""
        observed = dict(self._observed or {})
        others = [rank for rank in range(len(self.hosts)) if rank != self.rank]
        silent = [rank for rank in others if rank not in observed or observed[rank].changes == 0]
        certain = sum(rank in observed and observed[rank].changes >= 2 for rank in others)
        if not final and certain + (len(silent) == 1) < len(others):
            return None
        if limit is not None:
            late = [rank for rank in others if rank in observed and observed[rank].beat.collective < self._collective]
            if late:
                dead = "shows no sign of life and " if late[0] in silent else ""
                named = f" (as did {name_ranks(late[1:])})" if len(late) > 1 else ""
                cause = f"{dead}did not reach {collective} within the time limit of {limit:g} s{named}"
                return self._error(late[0], cause)
        if silent:
            named = f" (as are {name_ranks(silent[1:])})" if len(silent) > 1 else ""
            return self._error(silent[0], f"its process is gone, without an error message{named}; was it killed?")
        if limit is not None:
            cause = f"{collective} did not finish within the time limit of {limit:g} s; raise timeout"
        else:
            cause = f"lost the connection to another rank in {collective}: {error}"
        return RankError(self.rank, self.hosts[self.rank], self._stage, cause)

    def _error(self, rank: int, cause: str) -> RankError:
        observed = self._observed or {}
        return RankError(rank, self.hosts[rank], observed[rank].beat.stage if rank in observed else self._stage, cause)

    def _run(self) -> None:
        try:
            while True:
                self._wake.wait(BEAT_SECONDS)
                self._wake.clear()
                self._round()
                if self._stopping and self._may_leave():
                    return
        except Exception as error:  # the store is gone
            self._store_error = " ".join(str(error).split())[:200] or type(error).__name__
        finally:
            self._published.set()

    def _round(self) -> None:
        """Write this rank's beat and failure, and read those of the others."""
        beat = Beat(self._beats + 1, self._collective, self._stage)
        self._store.set(f"beat/{self.rank}", json.dumps(asdict(beat)))
        if self._to_report is not None and self.failure is None:
            failure, survivors = self._to_report
            fields = [failure.rank, failure.host, failure.stage, failure.cause]
            self._store.compare_set("failure", "", json.dumps([survivors, *fields]))
        if self.failure is None and self._store.check(["failure"]):
            self._expected, *fields = json.loads(self._store.get("failure"))
            self._store.add("seen", 1)
            self.failure = RankError(*fields)
            self._published.set()
        if self.failure is not None and self.rank == 0:
            self._seen = self._store.add("seen", 0)
        if self._observed is not None:
            self._observe(self._observed)
        self._beats += 1
        self._last_round = time.monotonic()

    def _observe(self, observed: dict[int, _Observed]) -> None:
        for rank in range(len(self.hosts)):
            if rank != self.rank and self._store.check([f"beat/{rank}"]):
                beat = Beat(**json.loads(self._store.get(f"beat/{rank}")))
                if rank not in observed:
                    observed[rank] = _Observed(beat)
                elif beat.number != observed[rank].beat.number:
                    observed[rank] = _Observed(beat, observed[rank].changes + 1)

    def _may_leave(self) -> bool:
        if not self._left:
            self._left = self._store.add("left", 1)
        if self.rank == 0:
            self._left = self._store.add("left", 0)
        return self.rank != 0 or self._left >= self._expected or self.failure is not None

"""The thread in which the runs of one page live: commands go in, frames come out one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Queue
from typing import NamedTuple

from .forces import Forces
from .history import Frame
from .run import Run
from .tables import in_public

Command = Callable[[], None]


class Shot(NamedTuple):
    """What is shown at once: a frame of each run, and what acts on the chosen point in it."""

    frames: tuple[Frame, ...]
    forces: tuple[Forces | None, ...]


class Worker:
    """Steps the runs while they play, never more than one pair of frames ahead of the page.

    Runs are touched by commands alone, which this thread carries out one after the other. What a command or a step
    raises goes to `report`, and playing stops.
    """

    def __init__(self, report: Callable[[str], None]):
        self.runs: list[Run] = []
        self.playing = False
        self.speed = 1  # iterations per frame
        self.busy = ""  # what is being done, in words; empty while frames come
        self.point: int | None = None  # the point whose forces are shown
        self.shown: tuple[Frame, ...] = ()  # the last frames that were published
        self.frames: Queue[Shot] = Queue(maxsize=1)
        self._commands: Queue[tuple[str, Command] | None] = Queue()
        self._report = report
        self._thread = threading.Thread(target=self._work, name="equipoise-studio", daemon=True)
        self._thread.start()

    def ask(self, words: str, command: Command) -> None:
        """Have a command carried out, described by `words` while it lasts."""
        self._commands.put((words, command))

    def stop(self) -> None:
        """End the thread after what it is doing now."""
        self.playing = False
        self._commands.put(None)

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def publish(self, frames: tuple[Frame, ...] | None = None) -> None:
        """Show frames, by default the present ones, in place of any that still wait; called by commands."""
        shot = self._shot(tuple(run.frame for run in self.runs) if frames is None else frames)
        with suppress(Empty):
            self.frames.get_nowait()
        self.shown = shot.frames
        self.frames.put(shot)

    def _shot(self, frames: tuple[Frame, ...]) -> Shot:
        i = self.point
        if i is None:
            return Shot(frames, (None,) * len(frames))
        return Shot(frames, tuple(Forces.of(run, frame, i) for run, frame in zip(self.runs, frames, strict=True)))

    def _work(self) -> None:
        while True:
            try:
                # While frames are wanted and the last has not been fetched, look in again soon.
                item = self._commands.get(timeout=None if not self.playing else 0.0 if self.frames.empty() else 0.005)
            except Empty:
                self._step()
                continue
            if item is None:
                return
            self.busy, command = item
            self._guarded(command)
            self.busy = ""

    def _step(self) -> None:
        if self.playing and self.frames.empty():
            self._guarded(lambda: self.publish(tuple(run.step(self.speed) for run in self.runs)))

    def _guarded(self, command: Command) -> None:
        try:
            command()
        except Exception as error:  # whatever it was, the page says it and the studio lives on
            self.playing = False
            self._report(in_public(error))

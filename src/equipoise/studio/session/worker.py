"""Runs the thread that computes the runs of one page: it executes commands and passes frames to the page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Queue
from typing import NamedTuple

from ...progress import show_on
from ..data_sources import public_message
from .history import Frame
from .method_run import MethodRun
from .point_forces import Forces
from .stage import Stage

Command = Callable[[], None]


class Shot(NamedTuple):
    """What the page shows at one moment: a frame of each run, and the forces on the selected point."""

    runs: tuple[MethodRun, ...]
    frames: tuple[Frame, ...]
    point: int | None
    forces: tuple[Forces | None, ...]  # of each run, None if its method does not iterate; empty without a point
    last: int  # the current iteration of the first run that iterates

    @classmethod
    def of(cls, runs: tuple[MethodRun, ...], frames: tuple[Frame, ...], point: int | None) -> Shot:
        """Return the shot of these frames of the runs; it includes the forces on `point` unless that is None."""
        last = runs[lead(runs)].iteration
        if point is None:
            return cls(runs, frames, None, (), last)
        forces = tuple(Forces.of(run, frame, point) for run, frame in zip(runs, frames, strict=True))
        return cls(runs, frames, point, forces, last)

    @property
    def iteration(self) -> int:
        """The iteration shown, that of the first run that iterates."""
        return self.frames[lead(self.runs)].iteration


def lead(runs: tuple[MethodRun, ...]) -> int:
    """Return the index of the first run that iterates; 0 if there is none."""
    return next((which for which, run in enumerate(runs) if run.iterates), 0)


class Worker:
    """Advances the runs of a page; while playing, at most one shot (a frame of each run) ahead of the page.

    Only the thread of the worker changes the runs: it executes commands one after another, and takes steps between
    them. If a command or a step fails, the message is passed to `report` and playing stops. `wake` is called when there
    is a new shot.
    """

    def __init__(self, report: Callable[[str], None], wake: Callable[[], None]):
        self._runs: tuple[MethodRun, ...] = ()
        self.playing = False
        self.speed = 1  # iterations per frame
        self.stage = Stage()  # shown while no frames are computed
        self.point: int | None = None  # the point whose forces are shown
        self.shown: Shot | None = None  # the last published shot of these runs
        self.frames: Queue[Shot] = Queue(maxsize=1)
        self._commands: Queue[tuple[str, Command] | None] = Queue()
        self._report, self._wake = report, wake
        self._thread = threading.Thread(target=self._work, name="equipoise-studio", daemon=True)
        self._thread.start()

    @property
    def runs(self) -> tuple[MethodRun, ...]:
        return self._runs

    @runs.setter
    def runs(self, runs: tuple[MethodRun, ...]) -> None:
        """Replace the runs and discard a waiting shot of the previous runs."""
        self._runs, self.shown = runs, None
        self._drop()

    def submit(self, description: str, command: Command) -> None:
        """Queue a command; the page shows `description` while the command runs."""
        self._commands.put((description, command))

    def stop(self) -> None:
        """End the thread after the commands that are already in the queue."""
        self.playing = False
        self._commands.put(None)

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def publish(self, frames: tuple[Frame, ...] | None = None) -> None:
        """Pass a frame of each run, by default the current one, to the page; it replaces a shot not yet fetched.

        Call this only from the thread of the worker, that is, in a command.
        """
        shot = Shot.of(self.runs, tuple(run.frame for run in self.runs) if frames is None else frames, self.point)
        self._drop()
        self.shown = shot
        self.frames.put(shot)
        self._wake()

    def _drop(self) -> None:
        with suppress(Empty):
            self.frames.get_nowait()

    def _work(self) -> None:
        while True:
            try:
                # While playing, poll: the page may have fetched the last shot.
                item = self._commands.get(timeout=None if not self.playing else 0.0 if self.frames.empty() else 0.002)
            except Empty:
                self._step()
                continue
            if item is None:
                return
            description, command = item
            self.stage.clear(description)
            with show_on(self.stage):
                self._guarded(command)
            self.stage.clear("")

    def _step(self) -> None:
        if self.playing and self.frames.empty():
            self._guarded(lambda: self.publish(tuple(run.step(self.speed) for run in self.runs)))

    def _guarded(self, command: Command) -> None:
        try:
            command()
        except Exception as error:  # the page shows any error, and the studio continues
            self.playing = False
            self._report(public_message(error))

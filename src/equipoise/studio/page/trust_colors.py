"""The trust of the maps that are shown, measured again as they move."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._types import Array
from ...evaluate import Measured
from ...evaluate.figures.shading import Shading, by_trust
from ..session.history import Frame
from ..session.worker import Shot

PAUSE = 3.0  # times as long as a measurement takes until the next begins, so that the map can move meanwhile; chosen


class TrustColors(NamedTuple):
    """A code for every point, that after the last shade where it was not measured; the shades, mean and iteration."""

    codes: Array  # (n,) uint8
    shading: Shading
    mean: float
    iteration: int


def trust_colors(measured: Measured, n: int, frame: Frame) -> TrustColors:
    """Return the shades of the n points of a frame."""
    values = np.ones(len(measured.points)) if measured.values is None else measured.values
    shading = by_trust(values)
    codes = np.full(n, len(shading.colors), np.uint8)
    codes[measured.points] = shading.codes
    return TrustColors(codes, shading, float(measured), frame.iteration)


class TrustWatch:
    """Measures the newest shot that it was given to look at, one after the other, in a thread of its own.

    `measured` gets the shot with the colours of its maps, `failed` the error of one that could not be measured.
    """

    def __init__(self, measured: Callable[[Shot, list[TrustColors]], None], failed: Callable[[Exception], None]):
        self._measured, self._failed = measured, failed
        self._next: Shot | None = None
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self, shot: Shot | None) -> None:
        """Measure a shot as soon as may be, in place of any that still waits; None: nothing more."""
        with self._changed:
            self._next = shot
            self._changed.notify()
            if self._thread is None and shot is not None:
                self._thread = threading.Thread(target=self._work, name="equipoise-trust", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread after what it is doing now."""
        self._ended.set()
        self.look(None)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next is not None or self._ended.is_set())
                shot, self._next = self._next, None
            if shot is None:
                return
            start = time.monotonic()
            try:
                pairs = zip(shot.runs, shot.frames, strict=True)
                self._measured(shot, [trust_colors(run.trust(frame), len(run.X), frame) for run, frame in pairs])
            except Exception as error:  # the page says it and the studio lives on
                self._failed(error)
            if self._ended.wait(PAUSE * (time.monotonic() - start)):
                return

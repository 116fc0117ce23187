"""Measure the trustworthiness of the visible maps during their optimisation."""

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

PAUSE = 3.0  # pause between measurements, in units of their duration, to leave time for the optimisation; chosen


class TrustColors(NamedTuple):
    """The colours of a map by trustworthiness.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n,)
        Index of the shade of each point; one past the last shade if the point was not measured.
    shading : Shading
        The colours, their names and the text of the legend.
    mean : float
        Trustworthiness of the map.
    iteration : int
        Iteration of the map.
    """

    codes: Array
    shading: Shading
    mean: float
    iteration: int


def trust_colors(measured: Measured, n: int, frame: Frame) -> TrustColors:
    """Return the colours of the n points of a frame, given its measured trustworthiness."""
    values = np.ones(len(measured.points)) if measured.values is None else measured.values
    shading = by_trust(values)
    codes = np.full(n, len(shading.colors), np.uint8)
    codes[measured.points] = shading.codes
    return TrustColors(codes, shading, float(measured), frame.iteration)


class TrustWatch:
    """Measures the trustworthiness of the latest shot in a separate thread.

    Parameters
    ----------
    measured : callable
        Called with the shot and the colours of its maps.
    failed : callable
        Called with the error if a measurement fails.
    """

    def __init__(self, measured: Callable[[Shot, list[TrustColors]], None], failed: Callable[[Exception], None]):
        self._measured, self._failed = measured, failed
        self._next: Shot | None = None
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, shot: Shot | None) -> None:
        """Measure `shot` next, in place of a shot that is still waiting; None only discards the waiting shot."""
        with self._changed:
            self._next = shot
            self._changed.notify()
            if self._thread is None and shot is not None:
                self._thread = threading.Thread(target=self._work, name="equipoise-trust", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread after the current measurement."""
        self._ended.set()
        self.watch(None)

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
            except Exception as error:  # shown on the page; the studio continues
                self._failed(error)
            if self._ended.wait(PAUSE * (time.monotonic() - start)):
                return

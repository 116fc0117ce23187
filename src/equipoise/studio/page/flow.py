"""Frames on their way to the browser: no more than it draws."""

from __future__ import annotations

import time
from collections import deque

AHEAD = 2  # frames that were sent and have not been drawn: one on the way while one is drawn
PATIENCE = 0.5  # seconds after which another is sent all the same: to a hidden tab two in a second
SPAN = 20  # frames over which the rate is taken


class Flow:
    """Counts frames sent and drawn. What was sent before the page was there is never drawn, so that it has patience."""

    def __init__(self) -> None:
        self._sent_at = 0.0
        self.begin()

    def begin(self) -> None:
        """Forget the frames before."""
        self._waiting, self._drawn = 0, 0
        self._times: deque[float] = deque(maxlen=SPAN)

    def open(self) -> bool:
        """Return whether a frame may be sent."""
        return self._waiting < AHEAD or time.monotonic() - self._sent_at > PATIENCE

    def sent(self) -> None:
        self._waiting, self._sent_at = min(self._waiting, AHEAD - 1) + 1, time.monotonic()

    def drawn(self, total: int) -> None:
        """Hear how many frames the browser has drawn since it opened the page."""
        count, self._drawn = max(total - self._drawn, 1), total
        self._waiting = max(self._waiting - count, 0)
        self._times.append(time.monotonic())

    @property
    def rate(self) -> float:
        """Frames drawn in a second; 0 before there are two."""
        span = self._times[-1] - self._times[0] if len(self._times) > 1 else 0.0
        return (len(self._times) - 1) / span if span else 0.0

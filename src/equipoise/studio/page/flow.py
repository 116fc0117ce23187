"""Flow control: send frames no faster than the browser draws them."""

from __future__ import annotations

import time
from collections import deque

AHEAD = 2  # maximum number of frames sent but not yet drawn: one in transit while one is drawn
TIMEOUT = 0.5  # seconds after which a frame is sent anyway, so that hidden tabs get two per second
SPAN = 20  # number of frames over which the rate is measured


class Flow:
    """Counts frames sent and drawn, and decides from the counts when the next frame can be sent.

    A frame sent before the page was ready is never drawn. So that the studio does not wait for it forever, the next
    frame can always be sent after TIMEOUT seconds.
    """

    def __init__(self) -> None:
        self._sent_at = 0.0
        self.begin()

    def begin(self) -> None:
        """Reset the counts."""
        self._waiting, self._drawn = 0, 0
        self._times: deque[float] = deque(maxlen=SPAN)

    def ready(self) -> bool:
        """Return whether the next frame can be sent now."""
        return self._waiting < AHEAD or time.monotonic() - self._sent_at > TIMEOUT

    def sent(self) -> None:
        """Record that a frame was sent."""
        self._waiting, self._sent_at = min(self._waiting, AHEAD - 1) + 1, time.monotonic()

    def drawn(self, total: int) -> None:
        """Record the total number of frames that the browser has drawn."""
        count, self._drawn = max(total - self._drawn, 1), total
        self._waiting = max(self._waiting - count, 0)
        self._times.append(time.monotonic())

    @property
    def rate(self) -> float:
        """Frames drawn per second; 0 before the second frame."""
        span = self._times[-1] - self._times[0] if len(self._times) > 1 else 0.0
        return (len(self._times) - 1) / span if span else 0.0

"""What a studio allows its clients: connections, pages, uploads, and the memory and time of a page."""

from __future__ import annotations

from dataclasses import dataclass, fields

MB, GB = 2**20, 2**30


@dataclass(frozen=True)
class Limits:
    """Limits of a studio; all chosen.

    Parameters
    ----------
    upload : int, default=200 * 2**20
        Maximum size of an uploaded file in bytes: 70,000 rows of 350 numbers in .npy.
    uploads : int, default=2**30
        Maximum size of all uploaded files together, in bytes.
    uploading : int, default=2
        Maximum number of uploads at the same time; each is kept in memory until it is complete.
    connections : int, default=200
        Maximum number of open connections. A page holds one, and up to six more while it loads.
    pages : int, default=20
        Maximum number of open pages. Each has its own thread, data and runs.
    memory : int, default=4 * 2**30
        Maximum memory of the runs of a page, in bytes, estimated from the size of the table.
    play : float, default=3600.0
        Seconds after which a playing run is paused; Play continues it.
    idle : float, default=60.0
        Seconds that a client may take to send the header of a request, or wait between two requests.
    body : float, default=600.0
        Seconds that a client may take to send the body of a request.
    stall : float, default=30.0
        Seconds for which a client may accept no data that it has requested.
    """

    upload: int = 200 * MB
    uploads: int = GB
    uploading: int = 2
    connections: int = 200
    pages: int = 20
    memory: int = 4 * GB
    play: float = 3600.0
    idle: float = 60.0
    body: float = 600.0
    stall: float = 30.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValueError(f"{item.name} must be a positive number, got {value!r}")

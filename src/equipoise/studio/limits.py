"""Limits the connections, open pages and uploads of a studio, and the memory and playing time of each page."""

from __future__ import annotations

from dataclasses import dataclass, fields

MB, GB = 2**20, 2**30


@dataclass(frozen=True)
class Limits:
    """Upper limits on what the clients of a studio can use. The defaults are estimates of what suffices, not measured.

    Parameters
    ----------
    upload : int, default=200 * 2**20
        Maximum size in bytes of an uploaded file, or of a file opened from the studio's folder. The default allows
        70,000 rows of 350 float64 numbers in .npy.
    uploads : int, default=2**30
        Maximum size of all uploaded files together, in bytes.
    uploading : int, default=2
        Maximum number of uploads at the same time; each is kept in memory until it is complete.
    connections : int, default=200
        Maximum number of open connections. A page uses one, and up to six more while it loads.
    pages : int, default=20
        Maximum number of open pages. Each has its own thread, data and runs.
    memory : int, default=4 * 2**30
        Maximum memory of the runs of a page, in bytes. The memory is estimated before the runs start.
    play : float, default=3600.0
        Seconds after which a playing run is paused; the Play button continues it.
    idle : float, default=60.0
        Maximum time in seconds for sending the header of a request, and maximum pause between two requests.
    body : float, default=600.0
        Maximum time in seconds for sending the body of a request.
    stall : float, default=30.0
        Seconds after which a connection is closed if its client has accepted none of the data waiting for it.
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
                raise ValueError(f"the limit {item.name!r} must be a positive number, got {value!r}")

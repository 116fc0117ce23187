"""What a page shows at a moment, to be shared or saved."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...data import Dataset
from ..session.parameters import METHODS
from ..session.worker import Shot
from .export import MIME, export
from .link import Shown, View

NO_MAP = "there is no map yet; wait for the neighbours, choose data, or upload a table"


@dataclass(frozen=True)
class Picture:
    """A data set under its name in the studio, and the shot of the runs on it, once there is one.

    It is replaced as a whole, so that whoever reads it in another thread never finds the map of one data set beside the
    rows of another.
    """

    data: str
    dataset: Dataset
    shot: Shot | None = None

    def with_shot(self, shot: Shot) -> Picture:
        """Return the picture with this shot; a shot of runs on other data changes nothing."""
        return replace(self, shot=shot) if all(run.X is self.dataset.X for run in shot.runs) else self

    def shown(self) -> Shot:
        """Return the shot, or say that there is none."""
        if self.shot is None:
            raise ValueError(NO_MAP)
        return self.shot

    def title(self, which: int) -> str:
        shot = self.shown()
        frame, method = shot.frames[which], shot.runs[which].recipe.method
        of = "" if frame.measured == frame.iteration else f" at {frame.measured}"
        return f"{METHODS[method].title} · iteration {frame.iteration} · loss {frame.loss:.4g}{of}"

    def view(self, color: str) -> View:
        """Return what a link to this picture restores."""
        shot = self.shown()
        runs = tuple(Shown(run.recipe, frame.iteration) for run, frame in zip(shot.runs, shot.frames, strict=True))
        return View(self.data, runs, color, shot.point)

    def export(self, kind: str, which: int) -> tuple[bytes, str, str]:
        """Return one of the maps as a file, with the name and the type of it."""
        shot = self.shown()
        which = min(which, len(shot.frames) - 1)
        frame, method = shot.frames[which], shot.runs[which].recipe.method
        title = f"{self.dataset.name}, {METHODS[method].title}, iteration {frame.iteration}"
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in self.dataset.name)
        return export(kind, frame, self.dataset, title), f"{name}-{method}-{frame.iteration}.{kind}", MIME[kind]

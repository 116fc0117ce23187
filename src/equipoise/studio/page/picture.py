"""Holds what a page currently shows, so that it can be shared as a link or exported to a file."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...data import Dataset
from ..session.finished_run import FinishedRun
from ..session.parameters import METHODS
from ..session.worker import Shot
from ..table_choices import TableChoices
from .export import MIME, export
from .link import LinkedRun, View

NO_MAP = "there is no map yet; wait for the neighbour search, choose a data set, or upload a table"


@dataclass(frozen=True)
class Picture:
    """A data set, its name in the studio, and the latest shot (a frame of each run), if any.

    `choices` are those of the user about the file of the data set.

    The object is immutable and replaced as a whole, so that other threads never see the map of one data set with the
    rows of another.
    """

    data: str
    dataset: Dataset
    shot: Shot | None = None
    choices: TableChoices | None = None

    def with_shot(self, shot: Shot) -> Picture:
        """Return the picture with this shot, or unchanged if the shot belongs to other data."""
        return replace(self, shot=shot) if all(run.X is self.dataset.X for run in shot.runs) else self

    def require_shot(self) -> Shot:
        """Return the shot; raise ValueError if there is none."""
        if self.shot is None:
            raise ValueError(NO_MAP)
        return self.shot

    def title(self, which: int) -> str:
        """Return the title of one of the maps."""
        shot = self.require_shot()
        number = f"{which + 1} · " if len(shot.frames) > 1 else ""
        frame, run = shot.frames[which], shot.runs[which]
        method = run.recipe.method
        if isinstance(run, FinishedRun):
            return f"{number}{METHODS[method].title} · {run.result}"
        at = "" if frame.measured == frame.iteration else f" at {frame.measured}"
        return f"{number}{METHODS[method].title} · iteration {frame.iteration} · loss {frame.loss:.4g}{at}"

    def view(self, color: str, active: int) -> View:
        """Return the state for a link to this picture; the sliders control run `active`."""
        shot = self.require_shot()
        runs = tuple(LinkedRun(run.recipe, frame.iteration) for run, frame in zip(shot.runs, shot.frames, strict=True))
        return View(self.data, runs, color, shot.point, min(active, len(runs) - 1), self.choices)

    def export(self, kind: str, which: int) -> tuple[bytes, str, str]:
        """Return one of the maps as a file: its content, name and MIME type."""
        shot = self.require_shot()
        which = min(which, len(shot.frames) - 1)
        frame, method = shot.frames[which], shot.runs[which].recipe.method
        iterates = shot.runs[which].iterates
        title = f"{self.dataset.name}, {METHODS[method].title}" + (f", iteration {frame.iteration}" if iterates else "")
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in self.dataset.name)
        return (
            export(kind, frame, self.dataset, title),
            f"{name}-{method}{f'-{frame.iteration}' if iterates else ''}.{kind}",
            MIME[kind],
        )

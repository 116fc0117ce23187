"""Neighbours kept beside the checkpoints of a run, written once: whoever goes on from one need not search again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Array
from ..inputs import Input, Table
from ..neighbors import Graph
from . import archive
from .archive import Refused
from .checkpoint import Checkpoint, digest

FORMAT = 1  # of the files
LEAST = 10_000  # points; of fewer the search takes less than a second, and nothing is kept; chosen
REMEDY = "remove it, the neighbours are then searched again"


@contextmanager
def keeping_neighbors(data: Input, callbacks: Sequence[Any]) -> Iterator[None]:
    """Let a table look into the files of the checkpoints among the callbacks before it searches, and fill them."""
    checkpoints = [c for c in callbacks if isinstance(c, Checkpoint)]
    if not isinstance(data, Table) or not checkpoints or data.n < LEAST:
        yield
        return
    data.keep = KeptNeighbors(checkpoints).graph
    try:
        yield
    finally:
        del data.keep


class KeptNeighbors:
    """The neighbours of the points of a run, in a file beside each of its checkpoints: `path`.neighbors."""

    def __init__(self, checkpoints: Sequence[Checkpoint]):
        self.checkpoints = checkpoints

    def graph(self, X: Array, k: int, settings: list[Any], search: Callable[[], Graph]) -> Graph:
        """Return the k neighbours of each row of X that were kept, found with the same settings, or search and keep."""
        about = {"kind": "neighbours", "format": FORMAT, "equipoise": archive.version()}
        about["search"] = digest(X, k, settings)
        for checkpoint in self.checkpoints:
            if checkpoint.resume and (found := _read(_beside(checkpoint), about, (len(X), k))) is not None:
                return found
        graph = search()
        for checkpoint in self.checkpoints:
            # A checkpoint of another run is refused later, and its neighbours may still be wanted.
            if not (checkpoint.resume and Path(checkpoint.path).exists() and _beside(checkpoint).exists()):
                archive.write(_beside(checkpoint), about, [graph.indices, graph.distances, graph.recall])
        return graph


def _beside(checkpoint: Checkpoint) -> Path:
    return Path(f"{checkpoint.path}.neighbors")


def _read(path: Path, about: dict[str, Any], shape: tuple[int, int]) -> Graph | None:
    """Return the neighbours in a file, or None where there is none or they are those of something else."""

    def accept(path: str | Path, said: dict[str, Any]) -> None:
        if any(said.get(name) != value for name, value in about.items()):
            raise Refused(f"{path} holds no neighbours of this table")

    if not path.exists():
        return None
    try:
        indices, distances, recall = archive.read(path, accept)
    except Refused:
        return None
    except ValueError as error:
        raise ValueError(f"{error}; {REMEDY}") from None
    sound = (
        (indices.shape, distances.shape) == (shape, shape)
        and (indices.dtype, distances.dtype) == (np.int32, np.float64)
        and int(indices.min()) >= 0
        and int(indices.max()) < shape[0]
        and isinstance(recall, float)
        and 0 <= recall <= 1
    )
    if not sound:
        raise ValueError(f"{path} is damaged: its lists of neighbours do not fit the table; {REMEDY}")
    return Graph(indices, distances, recall)

"""Save the neighbours of a run next to its checkpoints, so that a resumed run need not search again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Array
from ..inputs import Input
from ..neighbors import Graph
from . import archive
from .archive import Refused
from .checkpoint import Checkpoint, fingerprint, neighbors_path

FORMAT = 1  # version of the file format
MIN_POINTS = 10_000  # for fewer points a search takes less than a second, and nothing is saved; chosen
REMEDY = "delete it to repeat the neighbour search"


@contextmanager
def cache_neighbors(data: Input, checkpoints: Sequence[Checkpoint]) -> Iterator[None]:
    """Within the context, read the neighbours of a dense table from a file next to a checkpoint.

    If no such file contains them, the neighbours are found by a search and saved. For fewer than `MIN_POINTS` points
    nothing is read or saved.
    """
    if data.n < MIN_POINTS:
        yield
        return
    data.lookup = NeighborsCache(checkpoints).graph
    try:
        yield
    finally:
        del data.lookup


class NeighborsCache:
    """Reads and writes the neighbours of a run, in a file `path`.neighbors next to each checkpoint `path`."""

    def __init__(self, checkpoints: Sequence[Checkpoint]):
        self.checkpoints = checkpoints

    def graph(self, X: Array, k: int, settings: list[Any], search: Callable[[], Graph]) -> Graph:
        """Return the k neighbours of each row of X.

        The neighbours are read from the file next to a checkpoint with `resume`, if that file was saved for the same X,
        k and `settings`. Otherwise `search` finds the neighbours. They are saved unless this would overwrite the file
        of another run.
        """
        about = {"kind": "neighbours", "format": FORMAT, "equipoise": archive.version()}
        about["search"] = fingerprint(X, k, settings)
        for checkpoint in self.checkpoints:
            if checkpoint.resume and (graph := _read(neighbors_path(checkpoint.path), about, (len(X), k))) is not None:
                return graph
        graph = search()
        for checkpoint in self.checkpoints:
            # Do not overwrite the neighbours of another run: its checkpoint raises later, and they may still be needed.
            if not (checkpoint.resume and Path(checkpoint.path).exists() and neighbors_path(checkpoint.path).exists()):
                archive.write(neighbors_path(checkpoint.path), about, [graph.indices, graph.distances, graph.recall])
        return graph


def _read(path: Path, about: dict[str, Any], shape: tuple[int, int]) -> Graph | None:
    """Return the neighbours in a file; None if there is no file, or if it was written for another search."""

    def accept(path: str | Path, saved: dict[str, Any]) -> None:
        if any(saved.get(name) != about[name] for name in ("kind", "format", "search")):
            raise Refused(f"{path} does not contain the neighbours of this table")

    if not path.exists():
        return None
    try:
        content = archive.read(path, accept)
    except Refused:
        return None
    except ValueError as error:
        raise ValueError(f"{error}, or {REMEDY}") from None
    if not _is_graph(content, shape):
        raise ValueError(f"{path} is damaged: its neighbours do not match the table; {REMEDY}")
    return Graph(*content)


def _is_graph(content: Any, shape: tuple[int, int]) -> bool:
    """Return whether `content` consists of the indices and distances of neighbours, both (n, k), and the recall."""
    match content:
        case [np.ndarray() as indices, np.ndarray() as distances, float(recall)]:
            return (
                (indices.shape, distances.shape) == (shape, shape)
                and (indices.dtype, distances.dtype) == (np.int32, np.float64)
                and int(indices.min()) >= 0
                and int(indices.max()) < shape[0]
                and float(distances.min()) >= 0  # not NaN either
                and float(distances.max()) < np.inf
                and 0 <= recall <= 1
            )
    return False

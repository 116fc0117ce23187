"""Original SNE over ranks, also where the normaliser Z_i of a point underflows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import array_like, to_numpy
from ..objectives import ConditionalKL
from .shared_map import SharedMap

BATCH = 64  # underflowing points whose rows are summed together, which needs BATCH · d numbers per own point; chosen


class SharedConditionalKL(ConditionalKL):
    """The loss of original SNE for a map whose points several ranks share.

    Points whose Z_i underflows are gathered on all ranks. Each rank sums their rows over its own points, from log k,
    which does not underflow; the sums over ranks have the same bytes for any number of ranks.
    """

    def _add_underflowing_rows(self, Y: Array, underflows: Array, results: tuple[Array, Array], engine: Any) -> None:
        shared: SharedMap = engine.shared
        own, (repulsion, log_Z) = shared.partition.own, results
        Y, at = to_numpy(Y), np.flatnonzero(to_numpy(underflows))
        positions = np.concatenate(shared.group.all_gather(at + own.start))
        if not len(positions):
            return
        points = np.concatenate(shared.group.all_gather(Y[at].astype(np.float64)))
        for start in range(0, len(positions), BATCH):
            batch = slice(start, start + BATCH)
            values, forces = self._rows(Y, positions[batch], points[batch], shared)
            for position, value, force in zip(positions[batch], values, forces, strict=True):
                repulsion -= array_like(repulsion, force)
                if own.start <= position < own.stop:
                    log_Z[position - own.start] = value

    def _rows(self, Y: Array, positions: Array, points: Array, shared: SharedMap) -> tuple[Array, Array]:
        """Return log Z_i (b,) of some points i of all ranks, and the forces (b, own, d) of their rows on own points."""
        b, d, first = len(points), Y.shape[1], shared.partition.own.start
        back = Y.astype(np.float64) - points[:, None]  # y_j − y_i, (b, own, d)
        d2 = np.square(back).sum(axis=2)
        log_k = self.kernel.log_value(d2)
        mine = np.flatnonzero((positions >= first) & (positions < first + len(Y)))
        log_k[mine, positions[mine] - first] = -np.inf
        largest = shared.group.all_reduce(log_k.max(axis=1, initial=-np.inf), "max")
        log_Z = largest + np.log(shared.columns(np.exp(log_k - largest[:, None]).T))
        weight = 2 * np.exp(log_k - log_Z[:, None]) * self.kernel.log_slope(d2)
        forces = weight[:, :, None] * back
        sums = shared.columns(np.moveaxis(forces, 0, 1).reshape(len(Y), b * d)).reshape(b, d)
        forces[mine, positions[mine] - first] -= sums[mine]  # that of a point on itself is 0
        return log_Z, forces

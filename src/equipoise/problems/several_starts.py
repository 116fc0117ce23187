"""A problem of attraction and repulsion with several initial maps, of which the most promising is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Array, Callback
from ..arrays.namespace import to_numpy
from ..engines import engine_state
from ..optimize.descent import State
from ..saving.checkpoint import RunCheckpoints, fingerprint
from .forces import ForceProblem


class SeveralStarts(ForceProblem):
    """A problem whose loss has several minima of different quality.

    `optimize` runs the early phase (100 iterations, or half of all if that is fewer) from each initial map, and the
    remaining iterations only from the map that has the lowest loss then. With m initial maps, the early phase is run
    m times. Callbacks are called during each of these runs, which count iterations from 0. `optimize(Y0=...)` and
    `descent` use a single initial map.

    Attributes
    ----------
    further_starts : sequence of ndarray of shape (n, d)
        The initial maps besides `Y0`; none by default.
    """

    further_starts: Sequence[Array] = ()
    _tried: tuple[float, ...] = ()  # the loss of each start after the early phase
    _count = 1  # number of starts of the current run

    def _starts(self) -> Sequence[Any]:
        return [*super()._starts(), *self.further_starts]

    def _run_all(
        self, starts: Sequence[Any], n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None
    ) -> Any:
        if len(starts) == 1:
            return super()._run_all(starts, n_iter, callbacks, saver)
        self._count = len(starts)
        try:
            for start in starts[len(self._tried) :]:
                if len(self._runs) == len(self._tried):
                    self._runs.append(self._start(start))
                loss = self._run_early(self._runs[-1], n_iter, callbacks, saver)
                if self._runs[-1].stopped == "callback":
                    return self.Y
                self._tried = (*self._tried, loss)
            if len(self._runs) == len(starts):
                self._runs = [self._runs[int(np.argmin(self._tried))]]
            self._run(self._runs[0], n_iter, callbacks, saver)
        finally:
            self._tried, self._count = (), 1
        return self.Y

    def _run_early(
        self, state: State, n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None
    ) -> float:
        """Run the early phase and return the loss after it; NaN if a callback stops the run."""
        try:
            with np.errstate(all="ignore"):  # a diverging run is reported once, from its loss
                descent = self._descent(state, n_iter, callbacks, saver)
                descent.run(self.schedule.phases(n_iter)[0].n_iter)
                return np.nan if descent.finished else descent.evaluate(loss=True)
        finally:
            self.engine.stepper.free_buffers()

    def _describe_run(self, starts: Sequence[Any], n_iter: int) -> dict[str, Any]:
        described = super()._describe_run(starts, n_iter)
        if len(starts) > 1:
            maps = [to_numpy(self._start(start).origin) for start in starts]
            described["initial map"] = fingerprint(maps, self.geometry)
        return described

    def _saved_state(self) -> dict[str, Any]:
        if self._count == 1:
            return super()._saved_state()
        runs = [state.plain() for state in self._runs]
        return {"runs": runs, "tried": np.array(self._tried), "engine": engine_state(self.engine)}

    def _restore_state(self, saved: Any, starts: Sequence[Any]) -> list[State]:
        if len(starts) == 1:
            return super()._restore_state(saved, starts)
        tried = tuple(float(loss) for loss in saved["tried"])
        all_tried = len(tried) == len(starts)
        if len(saved["runs"]) != (1 if all_tried else len(tried) + 1):
            raise ValueError(
                f"the file contains {len(saved['runs'])} runs and the losses of {len(tried)}, but there are"
                f" {len(starts)} initial maps"
            )
        chosen = [starts[int(np.argmin(tried))]] if all_tried else starts
        runs = []
        for plain, start in zip(saved["runs"], chosen, strict=False):
            runs += super()._restore_state({"state": plain, "engine": saved["engine"]}, [start])
        self._tried = tried
        return runs

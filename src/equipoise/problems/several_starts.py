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

# The second best run is kept after the early phase if its loss is at most this many times the lowest. Measured on six
# data sets of 900 to 1797 points: runs that overtook the best one later were at most 6 % above it; chosen.
CLOSE = 1.1


class SeveralStarts(ForceProblem):
    """A problem whose loss has several minima of different quality.

    `optimize` runs the early phase (100 iterations, or half of all if that is fewer) from each initial map. If the
    second lowest loss is then at most `CLOSE` times the lowest, both runs continue to three times that iteration, at
    most half of the rest; only the best takes the remaining iterations. Callbacks are called during each of these runs,
    which count iterations from 0. `optimize(Y0=...)` and `descent` use a single initial map.

    Attributes
    ----------
    further_starts : sequence of ndarray of shape (n, d)
        The initial maps besides `Y0`; none by default.
    """

    further_starts: Sequence[Array] = ()
    _count = 1  # number of starts of the current run
    _round = 0  # rounds that are complete: 0, 1 or 2
    _kept: tuple[int, ...] = ()  # the start of each run in `_runs`
    _tried: tuple[float, ...] = ()  # the loss of each run that has completed the current round

    def _starts(self) -> Sequence[Any]:
        return [*super()._starts(), *self.further_starts]

    def _run_all(
        self, starts: Sequence[Any], n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None
    ) -> Any:
        if len(starts) == 1:
            return super()._run_all(starts, n_iter, callbacks, saver)
        self._count = len(starts)
        try:
            early = self.schedule.phases(n_iter)[0].n_iter
            for until in (early, min(3 * early, (early + n_iter) // 2))[self._round :]:
                if not self._complete_round(starts, until, n_iter, callbacks, saver):
                    return self.Y
            if not _has_ended(self._runs[0]):
                self._run(self._runs[0], n_iter, callbacks, saver)
        finally:
            self._count, self._round, self._kept, self._tried = 1, 0, (), ()
        return self.Y

    def _complete_round(
        self,
        starts: Sequence[Any],
        until: int,
        n_iter: int,
        callbacks: Sequence[Callback],
        saver: RunCheckpoints | None,
    ) -> bool:
        """Continue each run up to iteration `until`, and keep the best; return False if a callback ended one.

        The first round begins a run from each start. A single run is not continued here.
        """
        if not self._round:
            self._kept = tuple(range(len(starts)))
        elif len(self._kept) == 1:
            return True
        for number in self._kept[len(self._tried) :]:
            if len(self._runs) == len(self._tried):
                self._runs.append(self._start(starts[number]))
            state = self._runs[len(self._tried)]
            loss = self._run_until(state, until, n_iter, callbacks, saver)
            if state.stopped == "callback":
                return False
            self._tried = (*self._tried, loss)
        best = np.argsort(self._tried, kind="stable")[: 1 if self._round else 2]
        close = sorted(int(i) for i in best if i == best[0] or self._tried[i] <= CLOSE * self._tried[best[0]])
        self._runs, self._kept = [self._runs[i] for i in close], tuple(self._kept[i] for i in close)
        self._round, self._tried = self._round + 1, ()
        return True

    def _run_until(
        self, state: State, until: int, n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None
    ) -> float:
        """Continue a run up to iteration `until` and return its loss, that of its last report if it ends before."""
        try:
            with np.errstate(all="ignore"):  # a diverging run is reported once, from its loss
                descent = self._descent(state, n_iter, callbacks, saver)
                descent.run(until)
                return state.loss if descent.finished else descent.evaluate(loss=True)
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
        kept, tried = np.array(self._kept[: len(runs)]), np.array(self._tried, dtype=np.float64)
        return {"runs": runs, "kept": kept, "tried": tried, "round": self._round, "engine": engine_state(self.engine)}

    def _restore_state(self, saved: Any, starts: Sequence[Any]) -> list[State]:
        if len(starts) == 1:
            return super()._restore_state(saved, starts)
        kept, number = [int(i) for i in saved["kept"]], int(saved["round"])
        tried, count = tuple(float(loss) for loss in saved["tried"]), len(saved["runs"])
        begun = number > 0 or (kept == list(range(count)) and count - len(tried) in (0, 1))
        known = number in (0, 1, 2) and set(kept) <= set(range(len(starts)))
        if not (begun and known and len(set(kept)) == len(kept) == count > 0 and len(tried) <= count):
            raise ValueError(
                f"the file contains {count} runs from the starts {kept} and the losses of {len(tried)}, but there are"
                f" {len(starts)} initial maps"
            )
        runs = []
        for plain, start in zip(saved["runs"], kept, strict=True):
            runs += super()._restore_state({"state": plain, "engine": saved["engine"]}, [starts[start]])
        self._round, self._kept, self._tried = number, tuple(kept), tried
        return runs


def _has_ended(state: State) -> bool:
    """Return whether a stopping rule has ended a run before its last iteration."""
    return state.stopped != "n_iter"

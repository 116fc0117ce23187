"""The unsolved problem of a map whose points several ranks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Array, Callback
from ..arrays.namespace import array_namespace, to_numpy
from ..engines import engine_settings
from ..geometry import Directions, Flat, Geometry, Sphere
from ..optimize.descent import State, split_callbacks
from ..optimize.gradient_steps import GradientSteps
from ..optimize.rules import check_n_iter
from ..problems.forces import ForceProblem
from ..saving.checkpoint import Checkpoint, RunCheckpoints, fingerprint, locked
from .shared_map import SharedMap


class SharedFlat(Flat):
    """Flat space, in which the map of all ranks together is centred after a step."""

    def __init__(self, flat: Flat, shared: SharedMap):
        super().__init__()
        self.A, self._shared = flat.A, shared

    def retract(self, U: Array) -> Array:
        return U - array_namespace(U).astype(self._shared.mean(U), U.dtype)


def check_geometry(geometry: Geometry) -> None:
    """Raise ValueError unless maps in a geometry can be fitted over ranks."""
    if not ((geometry.centred_flat and isinstance(geometry, Flat)) or type(geometry) in (Sphere, Directions)):
        raise ValueError(
            f'geometry={geometry!r} is not supported over ranks; use geometry="plane" or "sphere", or fit on one'
            " machine"
        )


def shared_geometry(geometry: Geometry, shared: SharedMap) -> Geometry:
    """Return a geometry whose steps are those of all ranks together; raise ValueError if there is none."""
    check_geometry(geometry)
    return SharedFlat(geometry, shared) if isinstance(geometry, Flat) else geometry  # which moves points by themselves


class SharedSteps(GradientSteps):
    """Gradient steps of a map that several ranks share; callbacks see the whole map on rank 0 only."""

    def __init__(self, *arguments: Any, shared: SharedMap, ids: Array):
        super().__init__(*arguments)
        self._shared, self._ids = shared, ids

    def start_progress(self, n_iter: int, done: int) -> list[Callback]:
        return super().start_progress(n_iter, done) if self._shared.group.rank == 0 else []

    def current_map(self, state: State) -> Array:
        """Return the whole map in the order of the input on rank 0, and an empty one on the other ranks."""
        Y = in_input_order(self._shared, self.geometry.map(state.U), self._ids)
        Y = to_numpy(state.U[:0]).copy() if Y is None else Y
        Y.flags.writeable = False
        return Y


def in_input_order(shared: SharedMap, x: Array, ids: Array) -> Array | None:
    """Return x (n, ...) of all points in the order of the input on rank 0; None on the others."""
    every, order = shared.gather(x), shared.gather(ids)
    if every is None or order is None:
        return None
    result = np.empty_like(every)
    result[order] = every
    return result


class SharedCheckpoints(RunCheckpoints):
    """Checkpoints of a run on several ranks: rank 0 writes them, and any number of ranks can read them."""

    shared: SharedMap

    def save_if_due(self, iteration: int) -> None:
        if any(iteration % checkpoint.every == 0 for checkpoint in self.checkpoints):
            state = self.state()  # all ranks take part
            if self.shared.group.rank == 0:
                self._write_if_due(iteration, state)
            self.shared.group.barrier()


class SharedProblem(ForceProblem):
    """The problem of one rank, which holds the own rows of the map, of the affinities and of the initial map.

    Parameters
    ----------
    *arguments : as for ForceProblem
    shared : SharedMap
    ids : array of int64, shape (own,)
        The input row of each own point.
    """

    def __init__(self, *arguments: Any, shared: SharedMap, ids: Array):
        self.shared, self.ids = shared, ids
        super().__init__(*arguments)

    def _steps(self, state: State, n_iter: int) -> GradientSteps:
        forces, phases = self._forces(state), self.schedule.phases(n_iter)
        return SharedSteps(forces, self.geometry, self.rule, phases, shared=self.shared, ids=self.ids)

    def whole_map(self) -> Array | None:
        """Return the map (n, d) of all ranks in the order of the input on rank 0; None on the others."""
        return in_input_order(self.shared, self.Y, self.ids)

    def optimize(
        self, n_iter: int | None = None, Y0: Array | None = None, callbacks: Sequence[Callback | Checkpoint] = ()
    ) -> Any:
        """Run the optimiser on all ranks and return the own rows of the map; callbacks are called on rank 0."""
        n_iter = self._default_n_iter if n_iter is None else check_n_iter(n_iter)
        starts = self._starts() if Y0 is None else [self._check(Y0)]
        functions, checkpoints = split_callbacks(callbacks)
        proxies = [_on_first_rank(function, self.shared) for function in functions]
        first = self.shared.group.rank == 0
        with self.shared.group.stage("descent"), locked(checkpoints if first else ()):
            self._runs = [self._start(starts[0])]
            saver = None
            if checkpoints:
                saver = SharedCheckpoints(checkpoints, self._describe_run(starts, n_iter), self._saved_state)
                saver.shared = self.shared
                saver.resume(lambda saved: self._resume(saved, starts))
            return self._run_all(starts, n_iter, proxies, saver)

    def _describe_run(self, starts: Sequence[Any], n_iter: int) -> dict[str, Any]:
        origin = to_numpy(self._start(starts[0]).origin)
        P = self.engine.halo.globalized(self.objective.affinities)  # type: ignore[attr-defined]
        lengths = np.diff(P.indptr).astype(np.int64)
        sums = np.zeros((len(lengths), 2))  # of values and of columns: entries differ in length between blocks
        rows = np.repeat(np.arange(len(lengths)), lengths)
        np.add.at(sums, rows, np.column_stack([P.data.astype(np.float64), P.indices.astype(np.float64)]))
        return {
            "affinities": self.shared.fingerprint(lengths, sums),
            "loss": type(self.objective).__name__,
            "initial map": self.shared.fingerprint(origin),
            "n_iter": n_iter,
            "learning rate or exaggeration": fingerprint(self.schedule),
            "optimizer": fingerprint(self.rule),
            "engine": ["ranks", engine_settings(self.engine)],
        }

    def _saved_state(self) -> dict[str, Any]:
        plain = super()._saved_state()
        state = plain["state"]
        for name in ("U", "velocity", "gain"):
            state[name] = self.shared.gather(state[name])
        return plain

    def _restore_state(self, saved: Any, starts: Sequence[Any]) -> list[State]:
        own, n = self.shared.partition.own, self.shared.partition.n
        state = dict(saved["state"])
        for name in ("U", "velocity", "gain"):
            if len(state[name]) != n:
                raise ValueError(f"the saved {name} has {len(state[name]):,} rows, but the data have {n:,}")
            state[name] = state[name][own]
        return super()._restore_state({**saved, "state": state}, starts)


def _on_first_rank(callback: Callback, shared: SharedMap) -> Callback:
    """Return a callback that calls `callback` on rank 0, and stops all ranks if it returns True there."""

    def call(iteration: int, loss: float, Y: Array) -> bool:
        stop = bool(callback(iteration, loss, Y)) if shared.group.rank == 0 else False
        return bool(shared.group.broadcast_value(stop))

    return call

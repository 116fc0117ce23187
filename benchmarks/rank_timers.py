"""Times of the parts of a fit over ranks, measured around calls from outside: the library has no timers."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

PARTS = ("reading", "neighbours", "affinities", "initial map", "descent")
WORK = ("edges", "spreading", "convolution", "gathering", "step", "checks of the tolerance")
TALK = ("halo exchange", "all-reduce of the mesh", "reductions")
CORE = {
    "edges_sparse": "edges", "spread_integers": "spreading", "convolve": "convolution", "gather": "gathering",
    "near": "gathering", "move_rows": "step", "shift_rows": "step", "momentum_step": "step",
    "field_at": "checks of the tolerance",
}  # fmt: skip
PARTITIONS = (2, 4, 8, 16, 32, 64)


class Timers:
    """Seconds of the parts of a fit on this rank, of the clock and of the processor, and bytes that it sends.

    Attributes
    ----------
    clock, processor : dict of float
    calls, sent : dict of int
        Numbers of collectives during the descent, and bytes passed to them for other ranks.
    nodes : int
        Nodes of all meshes of the descent together.
    """

    def __init__(self) -> None:
        self.clock: dict[str, float] = defaultdict(float)
        self.processor: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.sent: dict[str, int] = defaultdict(int)
        self.nodes, self._descends, self._mesh = 0, False, np.empty(0)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        start, busy = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.clock[name] += time.perf_counter() - start
            self.processor[name] += time.process_time() - busy

    def wrap(self, owner: Any, name: str, part: str) -> Any:
        """Replace `owner.name` by a function that measures it, and return the original."""
        original = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if part in WORK and not self._descends:
                return original(*args, **kwargs)
            if part == "spreading":
                self._mesh = args[4]
                self.nodes += self._mesh.size
            with self.part(part):
                return original(*args, **kwargs)

        setattr(owner, name, call)
        return original

    def wrap_collective(self, group: Any, name: str) -> None:
        """Measure a collective of a group during the descent."""
        original = getattr(group, name)

        def call(data: Any, *args: Any) -> Any:
            if not self._descends:
                return original(data, *args)
            arrays = data if name == "all_to_all" else [np.asarray(data)] * (1 if name == "all_reduce" else group.size)
            part = (
                "all-reduce of the mesh"
                if data is self._mesh
                else "halo exchange"
                if name == "all_to_all"
                else "reductions"
            )
            self.calls[part] += 1
            others = [a.nbytes for r, a in enumerate(arrays) if name == "all_reduce" or r != group.rank]
            self.sent[part] += sum(others) if group.size > 1 else 0
            with self.part(part):
                return original(data, *args)

        setattr(group, name, call)

    def wrap_halo(self, group: Any) -> None:
        """Measure the start of each exchange of the halo and the wait for its end; in between, ranks compute."""
        original = group.start_all_to_all

        def call(arrays: Any, *args: Any) -> Any:
            if not self._descends or group.size == 1:
                return original(arrays, *args)
            self.calls["halo exchange"] += 1
            self.sent["halo exchange"] += sum(a.nbytes for r, a in enumerate(arrays) if r != group.rank)
            with self.part("halo exchange"):
                finish = original(arrays, *args)

            def wait() -> Any:
                with self.part("halo exchange"):
                    return finish()

            return wait

        group.start_all_to_all = call

    @contextmanager
    def measuring(self, group: Any) -> Iterator[None]:
        """Measure everything that `distributed.fit` does on this rank."""
        from equipoise import _core
        from equipoise.distributed import rank_fit as fitting
        from equipoise.distributed.rank_affinities import Joint
        from equipoise.distributed.rank_problem import SharedProblem
        from equipoise.distributed.row_sources import CheckedRows

        for name in ("all_reduce", "all_gather", "all_to_all"):
            self.wrap_collective(group, name)
        self.wrap_halo(group)
        with ExitStack() as stack:
            for owner, name, part in (
                (CheckedRows, "read", "reading"), (fitting, "find_neighbors", "neighbours"),
                (Joint, "loss", "affinities"), (fitting, "_initial_map", "initial map"),
                *((_core, name, part) for name, part in CORE.items()),
            ):  # fmt: skip
                original = self.wrap(owner, name, part)
                stack.callback(setattr, owner, name, original)
            optimize = SharedProblem.optimize

            def descend(*args: Any, **kwargs: Any) -> Any:
                self._descends = True
                try:
                    with self.part("descent"):
                        return optimize(*args, **kwargs)
                finally:
                    self._descends = False

            stack.callback(setattr, SharedProblem, "optimize", optimize)
            SharedProblem.optimize = descend  # type: ignore[method-assign]
            yield
        for spent in (self.clock, self.processor):
            spent["neighbours"] -= spent["reading"]  # rows are read by the search
            spent["rest"] = spent["descent"] - sum(spent[part] for part in (*WORK, *TALK))


def halo_shares(A: Any) -> dict[str, float]:
    """Return, for several numbers of ranks, how many points of other ranks a rank needs, per own point.

    A has the affinities of all points (n, n) by position; ranks own equal ranges of positions.
    """
    n, shares = A.shape[0], {}
    for size in PARTITIONS:
        bounds, needed = np.linspace(0, n, size + 1).astype(np.int64), 0
        for a, b in pairwise(bounds):
            columns = np.unique(A.indices[A.indptr[a] : A.indptr[b]])
            needed += int(((columns < a) | (columns >= b)).sum())
        shares[str(size)] = needed / n
    return shares


def measure_collectives(group: Any, repeats: int = 15) -> dict[str, list[list[float]]]:
    """Return pairs of bytes and median seconds of reductions and exchanges of several sizes."""
    found: dict[str, list[list[float]]] = {"all_reduce": [], "all_to_all": []}
    for size in (2**7, 2**14, 2**17, 2**19, 2**21):
        mesh = np.ones(size, np.int64)
        parts = [np.ones(size // group.size, np.int64)] * group.size
        for name, argument in (("all_reduce", mesh), ("all_to_all", parts)):
            seconds = []
            for _ in range(repeats):
                group.barrier()
                start = time.perf_counter()
                getattr(group, name)(argument)
                seconds.append(time.perf_counter() - start)
            sent = mesh.nbytes if name == "all_reduce" else mesh.nbytes * (group.size - 1) // group.size
            found[name].append([sent, float(np.median(seconds))])
    return found

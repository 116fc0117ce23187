"""Steps recorded once as a CUDA graph and run again: a GPU that need not wait for Python between kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from typing import Any

import torch

PIECE = 8  # steps between two looks at the flag; chosen
MOVING = ("U", "velocity", "gain", "age")


class Replay:
    """A step of a descent on buffers of its own, as a graph; what the host would have looked at raises a flag.

    A few steps are run at a time. Those before the flag was raised are taken; whoever asked takes the next one with
    open eyes.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.running = False
        self._key: object = None
        self._graph: Any = None

    def watch(self, box: torch.Tensor, most: tuple[float, ...], least: float) -> None:
        """Raise the flag unless a map in this box is inside what was planned for, and has not collapsed."""
        from . import fused

        fused.watch(box, self._flag, most, max(least, self._least))

    def doubt(self, holds: torch.Tensor) -> None:
        """Raise the flag where a condition holds anywhere."""
        self._flag.bitwise_or_(holds.any())

    def run(self, step: Callable[[Any], None], key: object, state: Any, count: int, least: float) -> int:
        """Take up to `count` steps from a state, and return how many were taken; `key` says what is recorded.

        The widest side of a map must be at least `least`.
        """
        if count < 2:
            return 0
        if (key, least) != self._key:
            self._record(step, state, least)
            self._key = key, least
        own, taken = self._state, 0
        for name in MOVING[:3]:
            getattr(own, name).copy_(getattr(state, name))
        own.age.fill_(state.age)
        while taken < count:
            piece = min(PIECE, count - taken)
            before = [getattr(own, name).clone() for name in MOVING]
            good = self._replayed(piece)
            if good < piece:
                for name, value in zip(MOVING, before, strict=True):
                    getattr(own, name).copy_(value)
                self._replayed(good)
            taken += good
            if good < piece:
                break
        if taken:
            state.U, state.velocity, state.gain = (getattr(own, name).clone() for name in MOVING[:3])
            state.age += taken
            state.iteration += taken
        return taken

    def _replayed(self, count: int) -> int:
        """Run the graph so many times, and return how many steps came before the flag was raised."""
        self._flag.zero_()
        self._good.zero_()
        for _ in range(count):
            self._graph.replay()
        return int(self._good)

    def _record(self, step: Callable[[Any], None], state: Any, least: float) -> None:
        """Record one step on copies of a state; the first is taken once before, for what is made when first used."""
        self._least = least
        own = copy(state)
        own.U, own.velocity, own.gain = state.U.clone(), state.velocity.clone(), state.gain.clone()
        own.age = torch.full((), float(state.age), dtype=torch.float64, device=self.device)
        self._flag, self._good = (torch.zeros((), dtype=torch.int32, device=self.device) for _ in range(2))
        self._state = own
        graph = torch.cuda.CUDAGraph()
        pool = None if self._graph is None else self._graph.pool()  # what the last one took goes to the next
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        self.running = True
        try:
            with torch.cuda.stream(stream):
                if self._graph is None:
                    self._in_place(step)
                graph.capture_begin(pool, "thread_local")
                try:
                    self._in_place(step)
                except BaseException:
                    with suppress(RuntimeError):  # what went wrong first is what is told
                        graph.capture_end()
                    raise
                graph.capture_end()
        finally:
            self.running = False
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = graph

    def _in_place(self, step: Callable[[Any], None]) -> None:
        """Take a step, put what it made into the buffers, and count it if the flag is down."""
        own = self._state
        buffers = {name: getattr(own, name) for name in MOVING}
        step(own)
        for name, buffer in buffers.items():
            if getattr(own, name) is not buffer:
                buffer.copy_(getattr(own, name))
                setattr(own, name, buffer)
        self._good.add_(self._flag == 0)

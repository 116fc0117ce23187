"""Steps recorded once as a CUDA graph and run again: a GPU that need not wait for Python between kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import Any

import torch

PIECE = 2  # steps between two looks at the flag, during which the next ones run already; chosen
MOVING = ("U", "velocity", "gain", "age")


class Replay:
    """A step of a descent on buffers of its own, as a graph; what the host would have looked at raises a flag.

    Steps after the flag was raised change nothing: they may be under way before anybody looks at it.
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
        own = self._state
        for name in MOVING[:3]:
            getattr(own, name).copy_(getattr(state, name))
        own.age.fill_(state.age)
        taken = self._replayed(count)
        if taken:
            state.U, state.velocity, state.gain = (getattr(own, name).clone() for name in MOVING[:3])
            state.age += taken
            state.iteration += taken
        return taken

    @cached_property
    def _beside(self) -> Any:
        return torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def at_once(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        """Return what both give; in a graph neither waits for the other."""
        if not torch.cuda.is_current_stream_capturing():
            return first(), second()
        here = torch.cuda.current_stream()
        self._beside.wait_stream(here)
        try:
            with torch.cuda.stream(self._beside):
                one = first()
            other = second()
        finally:
            here.wait_stream(self._beside)  # a graph does not end before its branches have met
        return one, other

    def _replayed(self, count: int) -> int:
        """Run the graph up to so many times, and return how many steps came before the flag was raised."""
        self._flag.zero_()
        self._good.zero_()
        for start in range(0, count, PIECE):
            end = min(start + PIECE, count)
            for _ in range(start, end):
                self._graph.replay()
            turn = start // PIECE % 2
            self._seen[turn].copy_(self._good, non_blocking=True)
            self._events[turn].record()
            if start > 0:  # the piece before this one
                self._events[1 - turn].synchronize()
                if int(self._seen[1 - turn]) < start:
                    break
        return int(self._good)

    def _record(self, step: Callable[[Any], None], state: Any, least: float) -> None:
        """Record one step on copies of a state; the first is taken once before, for what is made when first used."""
        self._least = least
        own = copy(state)
        rows = torch.contiguous_format
        own.U, own.velocity, own.gain = (getattr(state, name).clone(memory_format=rows) for name in MOVING[:3])
        own.age = torch.full((), float(state.age), dtype=torch.float64, device=self.device)
        self._flag, self._good = (torch.zeros((), dtype=torch.int32, device=self.device) for _ in range(2))
        self._seen = torch.zeros(2, dtype=torch.int32, pin_memory=True)
        self._events = [torch.cuda.Event() for _ in range(2)]  # type: ignore[no-untyped-call]
        self._state = own
        graph = torch.cuda.CUDAGraph()
        pool = None if self._graph is None else self._graph.pool()  # what the last one took goes to the next
        stream = torch.cuda.Stream(priority=-1)  # type: ignore[no-untyped-call]  # what is beside fills its gaps
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
        """Take a step, and if the flag is down put what it made into the buffers and count it."""
        from . import fused

        own = self._state
        buffers = [getattr(own, name) for name in MOVING]
        step(own)
        made = [getattr(own, name) for name in MOVING]
        fused.take(self._flag, self._good, buffers, made)
        own.U, own.velocity, own.gain, own.age = buffers

"""Records an optimiser step once as a CUDA graph and replays it, so that the GPU never waits for Python."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np
import torch

from ...arrays.namespace import centered, total
from ..base import Engine, PlannedStep, StepPlan

MOST = 128  # largest number of steps in one replay; more than between two checks of the tolerance
PIECE = 2  # steps between two reads of the counter; the next piece runs meanwhile; chosen
MOVING = ("U", "velocity", "gain", "age")  # attributes of the state that a step changes


class PlannedSteps:
    """Steps of a plan, whose force, momentum and step are computed in one kernel."""

    def __init__(self, engine: Engine, plan: StepPlan):
        self.engine, self.plan = engine, plan

    def take(self, state: Any, momentum: torch.Tensor, taken: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return embedding, velocity and gain after step number `taken`, a scalar tensor, with `momentum[taken]`."""
        from . import fused

        U, force, engine = state.U, self.plan.force, self.engine
        (_, edges), (potential, gradient) = engine.placement.concurrently(
            lambda: engine.edges(U, force.A, force.kernel, -1.0, potential=False),
            lambda: engine.field(U, force.apart),
        )
        forces = edges, gradient, total(potential)
        U, velocity, gain = fused.advance((U, state.velocity, state.gain), forces, self.plan, momentum, taken)
        return centered(U), velocity, gain

    @classmethod
    def of(cls, engine: Engine, step: Any, state: Any, count: int) -> PlannedSteps | None:
        """Return the next `count` steps; None if only calls of `step` can take them."""
        plan = step.plan(state, count) if isinstance(step, PlannedStep) else None
        if plan is None or plan.force.charges is not None or float(np.float32(plan.force.push)) != plan.force.push:
            return None  # in float32, as the kernel gets it, `push` would not be the number
        return cls(engine, plan)


class CudaGraph:
    """Records one optimiser step as a CUDA graph, with buffers of its own for the state, and replays it.

    During a replay the host checks no conditions. A condition that must stop the steps, such as an embedding that no
    longer fits its mesh, sets a flag on the device instead. Once the flag is set, steps change nothing, so it does no
    harm that the host has already queued further steps before it notices.

    Attributes
    ----------
    recording : bool
        Whether a step is being recorded. While it is, no operation is allowed to wait for the device.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.recording = False
        self._side_streams: list[Any] = []
        self._depth = 0  # of calls of `concurrently`
        self.free()

    def free(self) -> None:
        """Free the graph and its buffers."""
        self._key: object = None
        self._graph: Any = None
        self._state: Any = None
        self._flag: Any = None
        self._taken: Any = None
        self._taken_on_host: Any = None
        self._events: Any = None
        self._momentum: Any = None
        self._min_extent = 0.0

    def flag_extent(self, box: torch.Tensor, max_sides: tuple[float, ...], min_widest: float) -> None:
        """Set the flag if a side of the box exceeds its entry of `max_sides`, or if all sides are too short.

        A side is too short if it is below `min_widest` or below the `min_extent` passed to `replay`.
        """
        from . import fused

        fused.flag_extent(box, self._flag, max_sides, max(min_widest, self._min_extent))

    def flag_narrow(self, box: torch.Tensor) -> None:
        """Set the flag if all sides of the box are shorter than the `min_extent` passed to `replay`, or not numbers."""
        self.flag_where(~((box[1] - box[0]).amax() >= self._min_extent))

    def flag_where(self, mask: torch.Tensor) -> None:
        """Set the flag if any entry of a mask is true, without waiting for the device."""
        self._flag.bitwise_or_(mask.any())

    def replay(
        self, step: Callable[[Any], None] | PlannedSteps, key: object, state: Any, count: int, min_extent: float
    ) -> int:
        """Take up to `count` steps, or none if `count` is below 2, and return the number of steps taken.

        The arguments are those of `Stepper.replay_steps`.
        """
        if count < 2:
            return 0
        count = min(count, MOST)
        if (key, min_extent) != self._key:
            self._record(step, state, min_extent)
            self._key = key, min_extent
        own = self._state
        if isinstance(step, PlannedSteps):
            self._momentum[:count].copy_(torch.as_tensor(step.plan.momentum[:count], dtype=torch.float32))
        for name in MOVING[:3]:
            getattr(own, name).copy_(getattr(state, name))
        own.age.fill_(state.age)
        taken = self._launch(count)
        if taken:
            state.U, state.velocity, state.gain = (getattr(own, name).clone() for name in MOVING[:3])
            state.age += taken
            state.iteration += taken
        return taken

    def concurrently(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        """Return the results of two independent functions; in a recording, they are parallel branches of the graph.

        The functions may call this method again, for further branches.
        """
        if not torch.cuda.is_current_stream_capturing():
            return first(), second()
        current, depth = torch.cuda.current_stream(), self._depth
        if depth == len(self._side_streams):
            self._side_streams.append(torch.cuda.Stream())  # type: ignore[no-untyped-call]
        side = self._side_streams[depth]
        side.wait_stream(current)
        self._depth += 1
        try:
            with torch.cuda.stream(side):
                one = first()
            other = second()
        finally:
            self._depth -= 1
            current.wait_stream(side)  # branches must join before the recording ends
        return one, other

    def _launch(self, count: int) -> int:
        """Replay the graph up to `count` times, and return how many steps were taken before the flag was set."""
        self._flag.zero_()
        self._taken.zero_()
        for start in range(0, count, PIECE):
            end = min(start + PIECE, count)
            for _ in range(start, end):
                self._graph.replay()
            turn = start // PIECE % 2
            self._taken_on_host[turn].copy_(self._taken, non_blocking=True)
            self._events[turn].record()
            if start > 0:  # read the counter of the previous piece
                self._events[1 - turn].synchronize()
                if int(self._taken_on_host[1 - turn]) < start:
                    break
        return int(self._taken)

    def _record(self, step: Callable[[Any], None] | PlannedSteps, state: Any, min_extent: float) -> None:
        """Record one step on a copy of the state; before the first recording, run the step once to fill caches."""
        self._min_extent = min_extent
        own = copy(state)
        rows = torch.contiguous_format
        own.U, own.velocity, own.gain = (getattr(state, name).clone(memory_format=rows) for name in MOVING[:3])
        own.age = torch.full((), float(state.age), dtype=torch.float64, device=self.device)
        self._momentum = torch.zeros(MOST, device=self.device)
        self._flag, self._taken = (torch.zeros((), dtype=torch.int32, device=self.device) for _ in range(2))
        self._taken_on_host = torch.zeros(2, dtype=torch.int32, pin_memory=True)
        self._events = [torch.cuda.Event() for _ in range(2)]  # type: ignore[no-untyped-call]
        self._state = own
        graph = torch.cuda.CUDAGraph()
        pool = None if self._graph is None else self._graph.pool()  # reuse the memory of the last graph
        stream = torch.cuda.Stream(priority=-1)  # type: ignore[no-untyped-call]  # the second stream fills the gaps
        stream.wait_stream(torch.cuda.current_stream())
        self.recording = True
        try:
            with torch.cuda.stream(stream):
                if self._graph is None:
                    self._step_in_place(step)
                graph.capture_begin(pool, "thread_local")
                try:
                    self._step_in_place(step)
                except BaseException:
                    with suppress(RuntimeError):  # report the first error, not this one
                        graph.capture_end()
                    raise
                graph.capture_end()
        finally:
            self.recording = False
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = graph

    def _step_in_place(self, step: Callable[[Any], None] | PlannedSteps) -> None:
        """Take a step; unless the flag is set, copy the result to the buffers and count the step."""
        from . import fused

        own = self._state
        buffers = [getattr(own, name) for name in MOVING]
        if isinstance(step, PlannedSteps):
            own.U, own.velocity, own.gain = step.take(own, self._momentum, self._taken)
        else:
            step(own)
        new = [getattr(own, name) for name in MOVING]
        fused.accept_step(self._flag, self._taken, buffers, new)
        own.U, own.velocity, own.gain, own.age = buffers

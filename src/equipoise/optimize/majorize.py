"""Minimising stress: the step of majorisation (SMACOF), sped up by L-BFGS and never uphill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import Array, Callback
from ..objectives.stress.metric import Slope

MEMORY = {"smacof": 0, "lbfgs": 10}  # pairs of steps and changes of the gradient that are kept; 10 is chosen
SOLVERS = tuple(MEMORY)
ARMIJO = 1e-4  # part of the predicted fall that a step must bring; the usual one (Nocedal & Wright 2006, section 3.1)
LOOK_BACK = 10  # iterations over which the fall of the loss is compared with `tol`


@dataclass
class Descent:
    """Where a run stands; complete after every iteration, so an interrupted one loses nothing."""

    Y: Array  # float64
    iteration: int = 0
    loss: float = np.inf
    curve: list[tuple[int, float]] = field(default_factory=list)
    stopped: str = "n_iter"  # what ended it: n_iter, min_loss_change or callback
    pairs: list[tuple[Array, Array, float]] = field(default_factory=list)  # steps that L-BFGS remembers

    def plain(self) -> dict[str, Any]:
        """Return everything, in plain values."""
        return {**vars(self), "curve": np.array(self.curve, dtype=np.float64).reshape(-1, 2)}

    @classmethod
    def restored(cls, plain: dict[str, Any], shape: tuple[int, ...]) -> Descent:
        """Return the run that `plain` was taken from, of maps of this shape."""
        maps = [plain["Y"], *(array for s, y, _ in plain["pairs"] for array in (s, y))]
        if any(Y.shape != shape or Y.dtype != np.float64 for Y in maps):
            raise ValueError(f"the map is not of shape {shape}")
        return cls(**{**plain, "curve": [(int(iteration), float(loss)) for iteration, loss in plain["curve"]]})


class _History:
    """The last steps s and changes y of the half gradient: −H G by the two loops of L-BFGS (Nocedal 1980), H₀ = γ/M."""

    def __init__(self, memory: int, pairs: list[tuple[Array, Array, float]]):
        """`pairs` holds what is remembered, and is changed in place."""
        self.memory, self.pairs = memory, pairs

    def add(self, s: Array, y: Array) -> None:
        product = _dot(s, y)
        if self.memory and product > 1e-10 * np.sqrt(_dot(s, s) * _dot(y, y)):  # curvature, or H would lose its sign
            self.pairs.append((s, y, product))
            del self.pairs[: -self.memory]

    def direction(self, G: Array, stiffness: Array) -> Array:
        q, used = G.copy(), []
        for s, y, product in reversed(self.pairs):
            a = _dot(s, q) / product
            q -= a * y
            used.append(a)
        q /= stiffness
        if self.pairs:
            _, y, product = self.pairs[-1]
            q *= product / _dot(y, y / stiffness)
        for (s, y, product), a in zip(self.pairs, reversed(used), strict=True):
            q += (a - _dot(y, q) / product) * s
        return -q


def minimize(
    slope: Callable[[Array], Slope],
    run: Descent,
    solver: str,
    n_iter: int,
    tol: float,
    callbacks: Sequence[Callback],
    keep: Callable[[int], None] = lambda iteration: None,
) -> None:
    """Move run.Y downhill for n_iter iterations, or until ten of them lower the loss by less than `tol` of it.

    The majorising step Y − G/M never raises the stress (de Leeuw 1977); with unit weights M = n, so that it is gradient
    descent with rate 1/(2n) (docs/math.md, eq. (7)). A step of L-BFGS, whose first is this one, is taken where it
    brings enough; else its memory is cleared and the majorising step taken. Steps that raise the loss are never taken.
    `keep` is called after every iteration; from the state that it finds then, a later run goes on as this one does.
    """
    history = _History(MEMORY[solver], run.pairs)
    here = slope(_float32(run.Y))
    if not run.curve and _record(run, here.loss, callbacks):
        return
    while run.iteration < n_iter:
        move = history.direction(here.half_gradient, here.stiffness)
        there = slope(_float32(run.Y + move))
        enough = 2 * ARMIJO * _dot(here.half_gradient, move) if history.pairs else 0.0
        if history.pairs and not there.loss < here.loss + enough:
            history.pairs.clear()
            move = -here.half_gradient / here.stiffness
            there = slope(_float32(run.Y + move))
        if not there.loss < here.loss:  # within rounding of a minimum
            run.stopped = "min_loss_change"
            return
        history.add(move, there.half_gradient - here.half_gradient)
        run.Y, here, run.iteration = run.Y + move, there, run.iteration + 1
        if _record(run, here.loss, callbacks):
            return
        if len(run.curve) > LOOK_BACK and run.curve[-1 - LOOK_BACK][1] - here.loss < tol * here.loss:
            run.stopped = "min_loss_change"
            return
        keep(run.iteration)


def _float32(Y: Array) -> Array:
    return Y.astype(np.float32)


def _dot(a: Array, b: Array) -> float:
    return float((a * b).sum())  # not by BLAS, whose order of summation depends on its threads


def _record(run: Descent, loss: float, callbacks: Sequence[Callback]) -> bool:
    """Keep the loss and tell every callback; True when one of them wants to stop."""
    if not np.isfinite(loss):
        raise FloatingPointError(f"the stress is {loss} at iteration {run.iteration}: the map is out of range")
    run.loss = loss
    run.curve.append((run.iteration, loss))
    Y = _float32(run.Y)
    Y.flags.writeable = False
    if any([callback(run.iteration, loss, Y) for callback in callbacks]):
        run.stopped = "callback"
    return run.stopped == "callback"

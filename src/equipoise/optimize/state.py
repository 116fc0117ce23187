"""The state of a descent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import full_like, host, like, placed, put_back


@dataclass
class State:
    """Where the optimisation stands; complete after every iteration, so an interrupted run loses nothing."""

    U: Array
    velocity: Array
    gain: Array
    origin: Array  # U at the beginning
    phase: int = -1  # the number of the last phase that was begun
    iteration: int = 0
    loss: float = np.nan
    settling: float = np.nan  # loss at the last report of the late phase
    age: int = 0  # steps since the forces last changed
    order: Array | None = None  # U[t] is point order[t]; None: as the points came
    curve: list[tuple[int, float]] = field(default_factory=list)
    stopped: str = "n_iter"  # what ended it: n_iter, min_grad_norm, min_loss_change or callback
    early_undone: bool = False  # early exaggeration only contracted the map, and the late phase began at the start
    due: Array | None = None  # of descents that sample edges: when each pulls next

    def in_order(self) -> Array:
        """Return U in the order in which the points came."""
        return put_back(self.U, self.order)

    def rest(self) -> None:
        """Forget what velocity and gains have learnt: the forces have changed, and it no longer holds."""
        self.velocity, self.gain, self.age = full_like(self.U, 0.0), full_like(self.U, 1.0), 0

    @classmethod
    def start(cls, U: Array) -> State:
        """Return the state at rest in U."""
        return cls(U, full_like(U, 0.0), full_like(U, 1.0), U)

    def plain(self) -> dict[str, Any]:
        """Return everything but the beginning, which whoever goes on from here has too."""
        curve = np.array(self.curve, dtype=np.float64).reshape(-1, 2)
        arrays: dict[str, Any] = {name: host(getattr(self, name)) for name in ("U", "velocity", "gain")}
        arrays["order"] = None if self.order is None else host(self.order)
        return {**{name: value for name, value in vars(self).items() if name != "origin"}, **arrays, "curve": curve}

    def restore(self, plain: dict[str, Any]) -> None:
        """Become the state that `plain` was taken from, after the same beginning."""
        for name in ("U", "velocity", "gain"):
            if plain[name].shape != self.origin.shape:
                raise ValueError(f"{name} has shape {plain[name].shape}, not {self.origin.shape}")
        arrays: dict[str, Any] = {name: like(self.origin, plain[name]) for name in ("U", "velocity", "gain")}
        arrays["order"] = plain["order"] if plain["order"] is None else placed(self.origin, plain["order"])
        curve = [(int(iteration), float(loss)) for iteration, loss in plain["curve"]]
        vars(self).update({**plain, **arrays, "curve": curve})

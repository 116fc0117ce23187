"""The recipe that reproduces a run: method, optimiser, initial values, the seed and every change of a parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .metrics import AUTO, check_metric
from .parameters import METHODS, OPTIMIZERS, Value, check_value

RESET_MOMENTUM = "rest"  # name of the event that resets the momentum, as after a rewind; links contain it


@dataclass(frozen=True)
class Event:
    """A change of a parameter at an iteration, or a reset of the momentum (RESET_MOMENTUM)."""

    iteration: int
    name: str
    value: Value = 0.0


@dataclass(frozen=True)
class Recipe:
    """A method, initial values of its parameters (the default if not listed), the seed, and the changes in order.

    `optimizer` names one of OPTIMIZERS, and `metric` one of METRICS; "auto" is the default metric of the table.
    """

    method: str = "tsne"
    first: tuple[tuple[str, Value], ...] = ()
    seed: int = 0
    events: tuple[Event, ...] = ()
    optimizer: str = "momentum"
    metric: str = AUTO

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method!r}; choose from {', '.join(METHODS)}")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"unknown optimizer {self.optimizer!r}; choose from {', '.join(OPTIMIZERS)}")
        check_metric(self.metric)
        if self.events and not METHODS[self.method].iterates:
            raise ValueError(f"{self.method} has no iterations, so that nothing can change during its run")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be between 0 and {2**32 - 1}, got {self.seed}")
        for name, value in self.first:
            check_value(self.method, name, value)
        for event in self.events:
            if event.name != RESET_MOMENTUM:
                check_value(self.method, event.name, event.value)
        if any(a.iteration > b.iteration for a, b in zip(self.events, self.events[1:], strict=False)):
            raise ValueError("the changes of a run (events) must be sorted by iteration")

    def with_event(self, event: Event) -> Recipe:
        """Return the recipe with one more change.

        A change at iteration 0 replaces the initial value. If the last change concerns the same parameter at the same
        iteration, the new change replaces it.
        """
        if event.iteration == 0 and event.name != RESET_MOMENTUM:
            return replace(self, first=tuple({**dict(self.first), event.name: event.value}.items()))
        last = self.events[-1] if self.events else None
        same = last is not None and (last.iteration, last.name) == (event.iteration, event.name)
        return replace(self, events=(*(self.events[:-1] if same else self.events), event))

    def until(self, iteration: int) -> Recipe:
        """Return the recipe with only the changes before an iteration."""
        return replace(self, events=tuple(event for event in self.events if event.iteration < iteration))

    def values(self) -> dict[str, Value]:
        """Return the values of the parameters after all changes, by name, without those left at their defaults."""
        return {
            **dict(self.first),
            **{event.name: event.value for event in self.events if event.name != RESET_MOMENTUM},
        }

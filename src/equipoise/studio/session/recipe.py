"""What makes a run the same again: the method, its first values, the seed, and every change on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .parameters import METHODS, Value, check_value

REST = "rest"  # not a parameter: from here on without momentum, as after winding back


@dataclass(frozen=True)
class Event:
    """A parameter that took a new value at an iteration, or REST."""

    iteration: int
    name: str
    value: Value = 0.0


@dataclass(frozen=True)
class Recipe:
    """A method, the values it began with (the method's own where none is given), the seed, and the changes in order."""

    method: str = "tsne"
    first: tuple[tuple[str, Value], ...] = ()
    seed: int = 0
    events: tuple[Event, ...] = ()

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"there is no method {self.method!r}; there are: {', '.join(METHODS)}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be from 0 to {2**32 - 1}, got {self.seed}")
        for name, value in self.first:
            check_value(self.method, name, value)
        for event in self.events:
            if event.name != REST:
                check_value(self.method, event.name, event.value)
        if any(a.iteration > b.iteration for a, b in zip(self.events, self.events[1:], strict=False)):
            raise ValueError("the changes of a run must be in the order of their iterations")

    def with_event(self, event: Event) -> Recipe:
        """Return the recipe with one change more; a change before anything has moved is the first value."""
        if event.iteration == 0 and event.name != REST:
            return replace(self, first=tuple({**dict(self.first), event.name: event.value}.items()))
        last = self.events[-1] if self.events else None
        same = last is not None and (last.iteration, last.name) == (event.iteration, event.name)
        return replace(self, events=(*(self.events[:-1] if same else self.events), event))

    def until(self, iteration: int) -> Recipe:
        """Return the recipe as it was when an iteration had been reached, changes made there left out."""
        return replace(self, events=tuple(event for event in self.events if event.iteration < iteration))

    def values(self) -> dict[str, Value]:
        """Return the values that are not the method's own, after all changes."""
        return {**dict(self.first), **{event.name: event.value for event in self.events if event.name != REST}}

"""Progress of the long steps: the stage, its rate, the time left and the falling loss, where someone can see them.

The steps say what they are doing, `stage("neighbours", n)`, and how far they are; within `shown()` this becomes bars of
tqdm on stderr, within `told(screen)` it goes to a screen of one's own. Elsewhere, and where stderr is neither a
terminal nor a notebook, nothing is shown and nothing computed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from ._types import Array

WIDTH = 16  # columns of the names of stages
COUNTED = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
UNCOUNTED = "{desc}{elapsed}"

_screen: ContextVar[Screen | None] = ContextVar("screen", default=None)


class Screen(Protocol):
    """Where progress is seen; `advance` is called from any thread."""

    def begin(self, name: str, total: int | None, unit: str, done: int) -> None: ...
    def end(self) -> None: ...
    def advance(self, count: int) -> None: ...
    def tell(self, iteration: int, loss: float, Y: Array) -> None: ...


class _Bars:
    """One bar at a time; each is left as it ended when the next begins."""

    def __init__(self) -> None:
        self.bar: Any = None

    def begin(self, name: str, total: int | None, unit: str, done: int) -> None:
        from tqdm.auto import tqdm  # of a notebook in notebooks, of a terminal elsewhere

        self.end()
        self.bar = tqdm(
            desc=f"{name:{WIDTH}s}",
            total=total,
            initial=done,
            unit=f" {unit}",
            bar_format=COUNTED if total else UNCOUNTED,
            dynamic_ncols=True,
        )

    def end(self) -> None:
        if self.bar is not None:
            self.bar.close()
        self.bar = None

    def advance(self, count: int) -> None:
        if self.bar is not None:
            self.bar.update(count)

    def tell(self, iteration: int, loss: float, Y: Array) -> None:
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {number(loss)}", refresh=False)
            self.bar.update(iteration - self.bar.n)


def number(loss: float) -> str:
    """Return a loss in as many digits as tell it from another."""
    return f"{loss:.4f}" if loss == 0 or 1e-3 <= abs(loss) < 1e4 else f"{loss:.4e}"


def visible() -> bool:
    """Return whether someone can see bars: stderr is a terminal, or belongs to a notebook."""
    return "ipykernel" in sys.modules or sys.stderr.isatty()


@contextmanager
def shown(wanted: object = True) -> Iterator[bool]:
    """Show the progress of what runs within, if it is wanted and can be seen; gives whether it is.

    >>> with shown():
    ...     eq.TSNE().fit(X)
    """
    if not wanted or not visible() or _screen.get() is not None:
        yield _screen.get() is not None
        return
    with told(_Bars()):
        yield True


@contextmanager
def told(screen: Screen) -> Iterator[None]:
    """Tell a screen the progress of what runs within."""
    token = _screen.set(screen)
    try:
        yield
    finally:
        screen.end()
        _screen.reset(token)


def stage(name: str, total: int | None = None, unit: str = "points") -> None:
    """Say that a stage of the work begins, of `total` units if they can be counted; the one before it is over."""
    if (screen := _screen.get()) is not None:
        screen.begin(name, total, unit, 0)


def pause() -> None:
    """End the stage, so that something else can be printed."""
    if (screen := _screen.get()) is not None:
        screen.end()


def advancing() -> Callable[[int], None]:
    """Return the function to be told of every so many units done, from any thread."""
    screen = _screen.get()
    return screen.advance if screen is not None else lambda count: None


def optimizing(n_iter: int, done: int) -> list[Callable[[int, float, Array], None]]:
    """Say that an optimiser begins, and return the callback that it needs: none where nothing is shown."""
    screen = _screen.get()
    if screen is None:
        return []
    screen.begin("optimise", n_iter, "iterations", done)
    return [screen.tell]

"""Progress bars for long computations.

A long computation announces each of its stages, such as the neighbour search, with `stage("neighbours", n)`. It reports
completed work to the function returned by `advance_callback()`. Inside `with shown():` these calls update tqdm bars on
stderr, if stderr is a terminal or the process is a notebook kernel; inside `with show_on(display):` they update
`display`. Outside such blocks they do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from ._types import Array

WIDTH = 16  # characters for the name of a stage
COUNTED = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
UNCOUNTED = "{desc}{elapsed}"

_display: ContextVar[Display | None] = ContextVar("display", default=None)


class Display(Protocol):
    """Interface of a progress display. Any thread can call `advance`."""

    def begin(self, name: str, total: int | None, unit: str, done: int) -> None:
        """Begin a stage of `total` units (None if unknown), of which `done` are already complete."""

    def end(self) -> None:
        """End the current stage, if any."""

    def advance(self, count: int) -> None:
        """Record that `count` more units are complete."""

    def on_iteration(self, iteration: int, loss: float, Y: Array) -> None:
        """Record an iteration of the optimiser; the arguments are those of the `callbacks` of a method."""


class _Bars:
    """Displays progress as tqdm bars, one at a time; finished bars stay on screen."""

    def __init__(self) -> None:
        self.bar: Any = None

    def begin(self, name: str, total: int | None, unit: str, done: int) -> None:
        from tqdm.auto import tqdm  # picks the notebook bar in notebooks

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

    def on_iteration(self, iteration: int, loss: float, Y: Array) -> None:
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {format_loss(loss)}", refresh=False)
            self.bar.update(iteration - self.bar.n)


def format_loss(loss: float) -> str:
    """Return a loss with four decimals, in scientific notation if it is very small or large."""
    return f"{loss:.4f}" if loss == 0 or 1e-3 <= abs(loss) < 1e4 else f"{loss:.4e}"


def can_show() -> bool:
    """Return whether stderr is a terminal or the process is a notebook kernel."""
    ipykernel = sys.modules.get("ipykernel.kernelapp")  # widgets import ipykernel in other programs too
    return (ipykernel is not None and ipykernel.IPKernelApp.initialized()) or sys.stderr.isatty()


@contextmanager
def shown(wanted: object = True) -> Iterator[bool]:
    """Show progress bars for the computations in a `with` block, if stderr is a terminal or this is a notebook.

    Parameters
    ----------
    wanted : object, default=True
        Whether to show bars; any value, read as a boolean.

    Yields
    ------
    visible : bool
        Whether progress is displayed, by this block or an enclosing one.

    Examples
    --------
    >>> with shown():
    ...     eq.TSNE().fit(X)
    """
    if not wanted or not can_show() or _display.get() is not None:
        yield _display.get() is not None
        return
    with show_on(_Bars()):
        yield True


@contextmanager
def show_on(display: Display) -> Iterator[None]:
    """Send the progress of the computations in a `with` block to `display`."""
    token = _display.set(display)
    try:
        yield
    finally:
        display.end()
        _display.reset(token)


def stage(name: str, total: int | None = None, unit: str = "points") -> None:
    """Begin a stage and end the previous one.

    Parameters
    ----------
    name : str
        Name of the stage, shown in front of its bar.
    total : int, optional
        Number of units of work, if known.
    unit : str, default="points"
        Name of the units of work, in the plural.
    """
    if (display := _display.get()) is not None:
        display.begin(name, total, unit, 0)


def end_stage() -> None:
    """End the current stage, so that other text can be printed below its bar."""
    if (display := _display.get()) is not None:
        display.end()


def advance_callback() -> Callable[[int], None]:
    """Return a function that any thread can call with the number of units of work that it has just completed."""
    display = _display.get()
    return display.advance if display is not None else lambda count: None


def start_optimizer_stage(n_iter: int, done: int) -> list[Callable[[int, float, Array], None]]:
    """Begin the stage "optimise", with `done` of `n_iter` iterations complete.

    Return a list with the callback that updates the display; the list is empty if no display is set.
    """
    display = _display.get()
    if display is None:
        return []
    display.begin("optimise", n_iter, "iterations", done)
    return [display.on_iteration]

"""BLAS on one thread, so that results do not depend on the number of cores; safe with several threads and forks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar, cast

from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Callable[..., Any])
Settings = list[tuple[Any, int]]  # libraries and their numbers of threads


class _SharedLimit:
    """The limit on libraries whose number of threads belongs to the process.

    The first of several contexts that overlap, in any threads, sets it, and the last one lifts it.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.contexts = 0
        self.before: Settings = []

    def enter(self, libraries: list[Any]) -> None:
        with self.lock:
            if self.contexts == 0:
                self.before = _limit(libraries)
            self.contexts += 1

    def leave(self) -> None:
        with self.lock:
            self.contexts -= 1
            if self.contexts == 0:
                _restore(self.before)

    def after_fork(self) -> None:
        """Lift the limit in a child process, where the other threads, and their contexts, no longer exist."""
        global _shared
        if self.contexts:
            _restore(self.before)
        _shared = _SharedLimit()  # contexts entered before the fork leave the old one, which the next line disarms
        self.before = []
        self.lock.release()


_shared = _SharedLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _shared.lock.acquire(),
        after_in_parent=lambda: _shared.lock.release(),
        after_in_child=lambda: _shared.after_fork(),
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread within the context, and restore its settings afterwards.

    Contexts of several threads may overlap; BLAS is limited until the last one ends.
    """
    shared, (of_process, of_thread) = _shared, _libraries()
    shared.enter(of_process)
    try:
        before = _limit(of_thread)
        try:
            yield
        finally:
            _restore(before)
    finally:
        shared.leave()


def on_one_blas_thread(function: F) -> F:
    """Return the function, run within `one_blas_thread`."""

    @wraps(function)  # a decorator of our own: contextlib's would be the frame to which `_warn` attributes warnings
    def wrapped(*args: Any, **settings: Any) -> Any:
        with one_blas_thread():
            return function(*args, **settings)

    return cast("F", wrapped)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Return the BLAS libraries whose number of threads belongs to the process, and those where each thread has one.

    They are found once: finding them takes 5 ms, as long as a small PCA. OpenBLAS built with OpenMP is of the second
    kind.
    """
    found = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    own = [getattr(library, "threading_layer", "") == "openmp" for library in found]
    return (
        [library for library, of_thread in zip(found, own, strict=True) if not of_thread],
        [library for library, of_thread in zip(found, own, strict=True) if of_thread],
    )


def _limit(libraries: list[Any]) -> Settings:
    """Set the libraries to one thread and return their settings before."""
    before = [(library, library.num_threads) for library in libraries]
    for library in libraries:
        library.set_num_threads(1)
    return before


def _restore(settings: Settings) -> None:
    for library, threads in settings:
        library.set_num_threads(threads)

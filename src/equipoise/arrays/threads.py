"""Work on several threads, and the number of threads of a block of code.

Most functions take `n_threads`. Losses and initial maps do not, because it changes no result: the code that builds them
sets it with `on_threads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, Thread
from typing import Any

_threads: ContextVar[int] = ContextVar("threads", default=1)


def current_threads() -> int:
    """Return the number of threads set by `on_threads`; 1 outside of it."""
    return _threads.get()


@contextmanager
def on_threads(n_threads: int) -> Iterator[None]:
    """Set the number of threads for a `with` block; results do not depend on it."""
    token = _threads.set(n_threads)
    try:
        yield
    finally:
        _threads.reset(token)


def run_on_threads(work: Callable[[Any], None], items: Sequence[Any], n_threads: int) -> None:
    """Call work(item) for each item on up to n_threads threads, one of which is the calling thread.

    Fewer threads are used if the system refuses to start more. After an exception no further item is started, and the
    exception is raised when the threads have ended.
    """
    left, lock, errors = iter(range(len(items))), Lock(), list[BaseException]()

    def run() -> None:
        while not errors:
            with lock:
                i = next(left, None)
            if i is None:
                return
            try:
                work(items[i])
            except BaseException as error:
                errors.append(error)

    started: list[Thread] = []
    try:
        for _ in range(min(n_threads, len(items)) - 1):
            started.append(Thread(target=run))
            try:
                started[-1].start()
            except RuntimeError:  # no memory for its stack, or too many threads
                started.pop()
                break
        run()
        for thread in started:
            thread.join()
    except BaseException as error:  # Ctrl-C between items
        errors.append(error)
        for thread in started:
            if thread.is_alive():
                thread.join()
        raise
    if errors:
        raise errors[0]

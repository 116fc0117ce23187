"""Answer a call by Equipoise, or by the original function if its parameters do not map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from .calls import ORIGINAL, NotAvailable, Record
from .patches import Function, Patch


@dataclass(frozen=True)
class Answer:
    """A function of another library, and the function of ours that answers it.

    `answer` takes the same arguments and raises NotAvailable if it has no answer for them. Until it raises, it must not
    have changed the estimator. `name` and `by` are the names of both in the table of calls.
    """

    module: str
    path: str
    name: str
    by: str
    answer: Callable[..., Any]

    def patch(self, record: Record) -> Patch:
        """Return the patch that answers calls and records how each was answered."""

        def replacement(original: Function) -> Function:
            def call(*args: Any, **kwargs: Any) -> Any:
                start, by, why = perf_counter(), self.by, ""
                try:
                    try:
                        return self.answer(*args, **kwargs)
                    except NotAvailable as reason:
                        by, why = ORIGINAL, str(reason)
                    except Exception as error:  # the original says in its own words what is wrong, or succeeds
                        by, why = ORIGINAL, _first_line(error)
                    return original(*args, **kwargs)
                finally:
                    record.add(self.name, by, why, perf_counter() - start)

            return call

        return Patch(self.module, self.path, replacement)


def _first_line(error: Exception) -> str:
    text = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

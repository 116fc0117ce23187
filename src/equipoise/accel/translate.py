"""Translate the parameters of an estimator of another library to ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..methods.estimator import threads
from ..methods.other_libraries import PARAMETERS
from .calls import NotAvailable

Convert = Callable[[Any], Any]


def defaults_of(cls: Any) -> dict[str, Any]:
    """Return the default of each parameter of a constructor."""
    parameters = [*inspect.signature(cls.__init__).parameters.values()][1:]
    return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}


def same(a: Any, b: Any) -> bool:
    """Return whether two values of a parameter are the same; arrays and other objects only if they are identical."""
    if a is b:
        return True
    simple = (bool, int, float, str, tuple, np.number, type(None))
    return isinstance(a, simple) and isinstance(b, simple) and bool(a == b)


def translate(estimator: Any, label: str, convert: Mapping[str, Convert | None]) -> dict[str, Any]:
    """Return the parameters of ours that correspond to those of an estimator.

    `label` selects the table of `PARAMETERS`. `convert` contains a function of the value for each parameter whose
    values have another meaning, or None if the default of ours takes its place. Raises NotAvailable if a parameter
    without a counterpart does not have its default.
    """
    table, ours = PARAMETERS[label], {}
    for name, default in defaults_of(type(estimator)).items():
        value = getattr(estimator, name)
        if name not in table:
            if not same(value, default):
                raise NotAvailable(f"{name}={shown(value)} has no counterpart")
        elif (counterpart := table[name]) is not None and (name not in convert or convert[name] is not None):
            ours[counterpart] = convert[name](value) if name in convert else value  # type: ignore[misc]
    return ours


def shown(value: Any) -> str:
    """Return a short text of a value for a reason."""
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = f"an array {np.shape(value)}" if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def jobs(n_jobs: int | None) -> int | None:
    """Return n_jobs for ours; -2 is all cores but one in joblib."""
    if n_jobs is None or n_jobs >= -1:
        return n_jobs
    return max(1, threads(-1) + 1 + n_jobs)


def iterations(limit: int, usual: int, ours: int) -> int:
    """Return the iterations that correspond to `limit` of the other library, whose default is `usual`.

    Ours reach a lower loss in `ours` iterations than the other library in `usual` (docs/migration), so that a larger
    limit is reduced in this proportion, and a smaller one is kept as long as it is below `ours`.
    """
    return min(limit, max(ours, round(limit * ours / usual)))

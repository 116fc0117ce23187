"""Caches of functions of a kernel that are shared by all engines."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

from ...kernels import Kernel

F = TypeVar("F", bound=Callable[..., Any])


def cached_by_kernel(maxsize: int) -> Callable[[F], F]:
    """Return a decorator like `lru_cache` for functions whose first argument is a kernel.

    A user-defined kernel whose attributes have changed, but not its hash, is another kernel.
    """

    def decorate(function: F) -> F:
        @lru_cache(maxsize)
        def cached(_: Any, *args: Any) -> Any:
            return function(*args)

        @wraps(function)
        def call(kernel: Kernel, *args: Any) -> Any:
            return cached(_attributes(kernel), kernel, *args)

        vars(call)["cache_clear"] = cached.cache_clear
        return cast(F, call)

    return decorate


def _attributes(value: Any) -> Any:
    """Return a hashable object that differs if an attribute of a kernel does."""
    if isinstance(value, Kernel):
        return tuple((name, _attributes(item)) for name, item in sorted(vars(value).items()))
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value

"""The number of threads of BLAS."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> Any:
    """Return a context in which BLAS runs on one thread: the same bytes whatever the machine's number of them."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    """The libraries of NumPy and SciPy, looked up once: looking takes as long as a small PCA, 5 ms."""
    return ThreadpoolController()

"""The number of threads of BLAS."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> Any:
    """Return a context in which BLAS uses one thread, so that results do not depend on the number of cores."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    """Return the BLAS libraries of NumPy and SciPy, found once: finding them takes 5 ms, as long as a small PCA."""
    return ThreadpoolController()

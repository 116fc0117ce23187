"""Type aliases shared by all modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]  # float unless stated otherwise
Matrix = Any  # dense ndarray or scipy.sparse CSR matrix; SciPy ships no types
Callback = Callable[[int, float, Array], Any]  # (iteration, loss, Y); returns True to stop

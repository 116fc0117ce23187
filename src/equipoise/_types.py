"""Names for the arrays that the modules hand to one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]  # of floats unless said otherwise
Matrix = Any  # a dense ndarray or a scipy.sparse CSR matrix: scipy ships no types


Callback = Callable[[int, float, Array], Any]  # (iteration, loss, Y); returns True to stop

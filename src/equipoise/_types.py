"""Names for the arrays that the modules hand to one another."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]  # of floats unless said otherwise
Matrix = Any  # a dense ndarray or a scipy.sparse CSR matrix: scipy ships no types

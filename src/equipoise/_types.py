"""Names for the arrays that the modules hand to one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
Matrix = Any  # a dense ndarray or a scipy.sparse CSR matrix: scipy ships no types

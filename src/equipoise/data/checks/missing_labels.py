"""Labels of classes that are missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array


def first_missing_label(labels: Array) -> int | None:
    """Return the index of the first label (n,) that is NaN, NaT, None or pandas' NA; None if there is none."""
    if labels.dtype.kind in "fc":
        missing = np.isnan(labels)
    else:
        missing = np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)
    return int(missing.argmax()) if missing.any() else None


def _is_missing(label: Any) -> bool:
    # By name, because pandas is optional; comparing its NA with itself gives NA, which has no truth value.
    return label is None or type(label).__name__ == "NAType" or label != label

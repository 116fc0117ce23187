"""A table with classes and names of rows, which tests of readers write to files and read back."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise import data

X = np.random.RandomState(0).standard_normal((60, 4))
KINDS = np.array(["a", "b", "c"], dtype=object)[np.arange(60) % 3]
NAMES = np.array([f"row {i}" for i in range(60)], dtype=object)


def assert_read_raises(path, match, **wanted):
    """Assert that reading the file raises a ValueError of one line."""
    with pytest.raises(ValueError, match=match) as caught:
        data.read(path, **wanted)
    assert "\n" not in str(caught.value)

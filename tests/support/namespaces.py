"""Array libraries for tests of code written against the array namespace."""

import array_api_strict
import numpy as np
import pytest
import torch

LIBRARIES = {
    "numpy": np.asarray,
    "torch": lambda values: torch.from_numpy(np.array(values)),
    "strict": array_api_strict.asarray,  # only what the standard defines; also represents CuPy
}
every_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES.keys())


def numpy_of(x):
    """Convert an array of any of these libraries to NumPy."""
    return x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)

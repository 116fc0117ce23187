"""Array libraries that formulas written against the array namespace are tested with."""

import array_api_strict
import numpy as np
import pytest
import torch

LIBRARIES = {
    "numpy": np.asarray,
    "torch": lambda values: torch.from_numpy(np.array(values)),
    "strict": array_api_strict.asarray,  # the standard and nothing more; also stands in for CuPy
}
every_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES.keys())


def numpy_of(x):
    """Return an array of any of these libraries as a NumPy array."""
    return x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)

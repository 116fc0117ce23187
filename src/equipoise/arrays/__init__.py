"""Functions for arrays of NumPy, PyTorch and CuPy, for sparse matrices, and for checks of the available memory."""

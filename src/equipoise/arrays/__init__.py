"""Arrays of NumPy, PyTorch and CuPy through one namespace, sparse matrices, and memory checks."""

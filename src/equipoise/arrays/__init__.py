"""Arrays of NumPy and PyTorch behind one set of functions, sparse matrices, and memory checks."""

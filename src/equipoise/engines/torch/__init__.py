"""Computes edges and field in PyTorch, on a GPU or on the CPU."""

"""The two primitives in PyTorch, on a GPU or on the CPU."""

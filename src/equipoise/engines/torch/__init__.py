"""The two primitives in PyTorch, on a GPU or the CPU."""

"""Losses whose gradients come from PyTorch's autograd."""

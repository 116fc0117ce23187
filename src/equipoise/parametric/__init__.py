"""An encoder in place of a map: its batches, its training. All of it needs PyTorch."""

"""Where the points start."""

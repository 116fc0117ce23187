"""Stress: losses of multidimensional scaling (docs/math.md, section 14)."""

"""Compute affinities P from the distances between neighbours (docs/math.md, section 3)."""

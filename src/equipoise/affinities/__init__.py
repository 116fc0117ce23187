"""From neighbours to the affinities P (docs/math.md, section 3)."""

"""From neighbours to affinities P (docs/math.md, section 3)."""

"""The losses of multidimensional scaling, which are called stress (docs/math.md, section 14)."""

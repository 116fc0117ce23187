"""The field of any kernel on a B-spline mesh, on the CPU (docs/math.md, section 10)."""

"""Computes the field of any kernel on a B-spline mesh: plans meshes for all devices, and runs those on the CPU."""

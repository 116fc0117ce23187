"""The field of any kernel on a B-spline mesh: planning for every device, and the mesh on the CPU."""

"""Triangulated surfaces for tests."""

import numpy as np
from scipy.spatial import ConvexHull


def sheet(rows, columns, keep=lambda x, y: True):
    """Return a flat grid of unit squares, each split in two triangles; `keep(x, y)` selects squares by their corner."""
    x, y = np.meshgrid(np.arange(columns + 1.0), np.arange(rows + 1.0))
    number = np.arange(x.size).reshape(x.shape)
    faces = []
    for r in range(rows):
        for c in range(columns):
            if keep(c, r):
                a, b, d, e = number[r, c], number[r, c + 1], number[r + 1, c], number[r + 1, c + 1]
                faces += [[a, b, e], [a, e, d]]
    used, faces = np.unique(faces, return_inverse=True)
    return np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])[used], faces.reshape(-1, 3)


def spiral(n):
    """Return points (n, 3) on a golden spiral over the unit sphere."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z**2)
    return np.column_stack([r * np.cos(turn), r * np.sin(turn), z])


def globe(n):
    """Return the vertices and faces of a triangulated unit sphere."""
    X = spiral(n)
    return X, ConvexHull(X).simplices  # of mixed orientation


def torus(around, across):
    """Return the vertices and faces of a torus with radii 2 and 1."""
    a, b = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    u, v = 2 * np.pi * a / around, 2 * np.pi * b / across
    vertices = np.stack([(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)], axis=-1).reshape(-1, 3)

    def corner(right, up):
        return ((a + right) % around * across + (b + up) % across).ravel()

    lower = np.column_stack([corner(0, 0), corner(1, 0), corner(0, 1)])
    upper = np.column_stack([corner(1, 0), corner(1, 1), corner(0, 1)])
    return vertices, np.concatenate([lower, upper])

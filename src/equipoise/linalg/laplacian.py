"""The eigenmap of sparse affinities on a device, from which a map may start."""

from __future__ import annotations

import torch

from ..arrays.device_csr import Rows
from .eigen import signed
from .lanczos import WIDTH, NotConverged, lanczos, start_of


def is_connected(W: Rows) -> bool:
    """Return whether the graph of symmetric W is of one piece: the least number of a point spreads until it stands."""
    label = torch.arange(W.shape[0], device=W.device)
    while True:
        near = torch.segment_reduce(
            label[W.indices].double(), "min", offsets=W.indptr, axis=0, initial=float(len(label))
        )
        lower = torch.minimum(label, near.long())
        lower = lower[lower]  # and that of the point it came from
        if torch.equal(lower, label):
            return not bool(label.any())
        label = lower


class Normalized:
    """D^(−1/2) W D^(−1/2) without its leading eigenvector, which is √D: float32, and products in a fixed order."""

    def __init__(self, W: Rows):
        degree = W.row_sums()[:, None]
        root = degree.clamp(min=1e-30 * float(degree.max())).sqrt()  # single precision holds its inverse
        self.W, self.root = W, root
        self.inverse, self.trivial = (1 / root).float(), (root / root.norm()).float()

    def times(self, U: torch.Tensor) -> torch.Tensor:
        """Return the product with U (n, b)."""
        U = self.inverse * self._without(U)
        product = torch.stack([self._sums(u) for u in U.T], dim=1)
        return self._without(self.inverse * product)

    def _sums(self, u: torch.Tensor) -> torch.Tensor:
        """Return W u, every row added up in the same order every time."""
        return torch.segment_reduce(u[self.W.indices].mul_(self.W.data), "sum", offsets=self.W.indptr, axis=0)

    def _without(self, U: torch.Tensor) -> torch.Tensor:
        return U - self.trivial * (self.trivial.T @ U)


def eigenmap(W: Rows, d: int, tol: float, restarts: int, steps: int) -> tuple[torch.Tensor, bool]:
    """Return D^(−1/2) times the d leading eigenvectors beyond the constant one, (n, d) in float64, W being connected.

    Where they do not converge, `steps` of smoothing stand in, as in spectral.py: the second value says so.
    """
    A = Normalized(W)
    n = W.shape[0]
    try:
        _, V = lanczos(A.times, start_of(n, min(d, WIDTH), A.inverse), d, tol, restarts)
        converged = True
    except NotConverged:
        V, converged = start_of(n, d, A.inverse), False
        for _ in range(steps):  # of (1 + A)/2, whose leading eigenvectors are those of A
            V = torch.linalg.qr(V + A.times(V))[0]
    return signed(V.double() / A.root), converged

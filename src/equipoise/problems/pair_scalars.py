"""The scalars A_ij and R_ij by which two points attract and repel each other (Draganov & Dohn 2024, eq. 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.blocks import FIXED_ENTRIES
from ..engines import HOST, Engine, Field
from ..engines.cpu import HostPlacement
from ..geometry.flat import squared_distances
from ..kernels import Kernel
from ..objectives import GramLoss, Objective


class _NoUnderflow(HostPlacement):
    """A placement in host memory on which no row may need a separate sum."""

    def indices_where(self, mask: Any) -> Array:
        found = HOST.indices_where(mask)
        if len(found):
            raise FloatingPointError(
                f"the kernel underflows between point {int(found[0])} and all others, so that its forces are not a"
                " sum over pairs; move the point closer to others"
            )
        return found


class PairwiseEngine:
    """Takes the place of an engine: for each point of a few, it returns the term of this point in the sums of forces.

    Where an engine returns Σ_j a_ij (y_i − y_j), an array (n, d), this one returns the factors a_ij of the chosen
    points j, an array (n, q). Potentials are those of the engine. An objective combines forces linearly with a factor
    per point i, so its attraction and repulsion become factors of y_i − y_j too.

    Parameters
    ----------
    engine : Engine
    columns : ndarray of shape (q,)
        The points j.
    """

    placement = _NoUnderflow()

    def __init__(self, engine: Engine, columns: Array):
        self.engine, self.columns = engine, columns
        self.traits, self.stepper = engine.traits, engine.stepper
        self.pairs = engine.pairs
        self.was_used = False

    def _compare(self, Y: Array) -> tuple[Array, Array]:
        """Return d2 (n, q) and the mask i ≠ j."""
        self.was_used = True
        Yi, Yj = np.asarray(Y, dtype=np.float64)[:, None, :], np.asarray(Y, dtype=np.float64)[None, self.columns, :]
        return squared_distances(self.pairs, Yi, Yj), np.arange(len(Y))[:, None] != self.columns

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        """Return Ψ of the engine, and the factors A_ij k^b k', (n, q)."""
        psi = self.engine.edges(Y, A, kernel, b, potential=True)[0] if potential else np.nan
        d2, others = self._compare(Y)
        weights = A[:, self.columns].toarray() if sparse.issparse(A) else A[:, self.columns]
        with np.errstate(over="ignore"):
            return psi, others * weights * np.exp((b + 1) * kernel.log_value(d2)) * kernel.log_slope(d2)

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        """Return the potential of the engine, and the factors 2 c_j k', (n, q) or (n, m, q) for m charges per point."""
        potential = self.engine.field(Y, kernel, charges).potential
        d2, others = self._compare(Y)
        slope = 2 * others * kernel.slope(d2)
        if charges is None:
            return Field(potential, slope)
        c = np.asarray(charges, dtype=np.float64)[self.columns]
        return Field(potential, slope * c if c.ndim == 1 else slope[:, None, :] * c.T)


def pair_scalars(objective: Objective, Y: Array, engine: Engine, i: Any, j: Any) -> tuple[Array, Array]:
    """Return A_ij and R_ij for pairs of points (see `ForceProblem.pair_scalars`), at the working coordinates Y."""
    n = len(Y)
    i, j = (np.arange(n)[:, None], np.arange(n)) if i is None and j is None else (i, j)
    rows, others = np.broadcast_arrays(_check_index(i, "i", n), _check_index(j, "j", n))
    columns, place = np.unique(others, return_inverse=True)
    place = place.reshape(others.shape)
    A, R = np.empty(rows.shape), np.empty(rows.shape)
    step = max(1, FIXED_ENTRIES // n)
    for start in range(0, len(columns), step):
        attraction, repulsion = _scalars_to(objective, Y, engine, columns[start : start + step])
        here = (place >= start) & (place < start + step)
        A[here] = attraction[rows[here], place[here] - start]
        R[here] = repulsion[rows[here], place[here] - start]
    return A, R


def _scalars_to(objective: Objective, Y: Array, engine: Engine, columns: Array) -> tuple[Array, Array]:
    """Return A_ij and R_ij for all points i and the points j in `columns`, each (n, q)."""
    if isinstance(objective, GramLoss):
        return _gram_scalars(objective, Y, columns)
    pairwise: Any = PairwiseEngine(engine, columns)
    balance = objective.balance(Y, pairwise, loss=False)
    if not pairwise.was_used:
        raise TypeError(
            f"the forces of {type(objective).__name__} are not sums over pairs of points; use attraction(Y)"
            " and repulsion(Y)"
        )
    return -balance.attraction, balance.repulsion


def _gram_scalars(objective: GramLoss, Y: Array, columns: Array) -> tuple[Array, Array]:
    """Return 4 B_ij and 4 (C Y Yᵀ C)_ij: the gradient is 4 Σ_j L_ij (y_i − y_j), L = B − C Y Yᵀ C (docs/math.md)."""
    n, centred = len(Y), Y - Y.mean(axis=0)
    unit = np.full((n, len(columns)), -1 / n)  # B 1 = 0, so that B times a centred unit vector is a column of B
    unit[columns, np.arange(len(columns))] += 1
    return 4 * np.asarray(objective.gram.product(unit)), 4 * centred @ centred[columns].T


def _check_index(index: Any, name: str, n: int) -> Array:
    """Return indices of points as an integer array; raise ValueError if they are missing or out of range."""
    values = None if index is None else np.asarray(index)
    if values is None or values.dtype.kind not in "iu":
        raise ValueError(f"{name} must be an index or an array of indices of points, got {index!r}; omit both for all")
    if values.size and not (values.min() >= 0 and values.max() < n):
        raise ValueError(f"{name} must be between 0 and {n - 1}, got {values.min()} to {values.max()}")
    return values

"""Approximates the Gram matrix of many points from their distances to a few landmarks (docs/math.md, "Landmarks")."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._tags import tagged
from .._types import Array
from ..arrays.namespace import to_numpy
from .gram import Gram
from .row_products import multiply_rows

PROBES = 64  # rows on which the error of an approximation is estimated; chosen
ROUNDING = 1e-12  # eigenvalues below this, relative to the largest, are rounding errors


@tagged("landmarks.Landmarks")
class Landmarks:
    """Nyström's approximation G' = K W⁺ Kᵀ of the Gram matrix of n points (Williams & Seeger 2001).

    It needs only the squared distances from all points to m of them, the landmarks. With c the mean of the
    landmarks, K (n, m) contains the products ⟨x_i − c, x_a − c⟩ = −½ (d²_ia − s_i − s_a) of points i and landmarks a,
    where s_i = mean_a d²_ia − ½ mean_ab d²_ab = ‖x_i − c‖²; W (m, m) contains the rows of K at the landmarks. `F`
    (n, r) contains coordinates with F Fᵀ = G'; classical scaling of F is landmark MDS (Platt 2005).

    Parameters
    ----------
    D2 : ndarray of shape (m, n)
        Squared distances from the landmarks to all points.
    chosen : ndarray of shape (m,)
        Indices of the landmarks.
    """

    def __init__(self, D2: Array, chosen: Array):
        self.D2, self.chosen = D2, chosen
        among = D2[:, chosen]
        self._half_mean = among.mean() / 2
        self._own = among.mean(axis=1) - self._half_mean
        values, U = linalg.eigh(self._products(among))
        # Distances that are not Euclidean give negative eigenvalues. Positive ones of the same magnitude are treated as
        # noise as well: division by their square roots would amplify it.
        keep = values > max(-values[0], ROUNDING * values[-1])
        if not keep.any():
            raise ValueError(
                "all landmarks coincide, or the distances between them are far from Euclidean; increase n_landmarks, or"
                " omit it to use all points"
            )
        self._whiten = np.ascontiguousarray((U[:, keep] / np.sqrt(values[keep]))[:, ::-1])
        self.F = self.coordinates(D2.T)

    def coordinates(self, d2: Array) -> Array:
        """Return the coordinates (q, r) of q points, given their squared distances `d2` (q, m) to the landmarks."""
        return multiply_rows(self._products(d2), self._whiten)

    def squared_norms(self, d2: Array) -> Array:
        """Return ‖x − c‖² (q,) for q points x, where c is the mean of the landmarks.

        `d2` (q, m) contains the squared distances from the points to the landmarks.
        """
        return d2.mean(axis=1) - self._half_mean

    def _products(self, d2: Array) -> Array:
        """Return ⟨x − c, x_a − c⟩ (q, m) for landmarks x_a with mean c, from squared distances `d2` (q, m) to them."""
        return -0.5 * (d2 - self.squared_norms(d2)[:, None] - self._own)

    def error(self, D2_rows: Array, which: Array) -> tuple[float, float]:
        """Return estimates of ‖G − G'‖_F and ‖G‖_F, computed from the q points with the indices `which`.

        `D2_rows` (q, n) contains the squared distances from these points to all points.

        Both matrices are centred at the mean c of the landmarks; centring at the mean of all points can only reduce the
        norms.
        """
        s = self.squared_norms(self.D2.T)
        G = -0.5 * (D2_rows - s[which, None] - s)
        return sampled_norm(G - self.F[which] @ self.F.T), sampled_norm(G)


def sampled_norm(rows: Array) -> float:
    """Return an estimate of the Frobenius norm of a matrix (n, n) from a uniform sample of its rows (q, n).

    The square of the estimate is unbiased.
    """
    q, n = rows.shape
    return float(np.sqrt(n / q * np.square(rows).sum()))


def choose(n: int, m: int, rng: np.random.RandomState) -> Array:
    """Return the sorted indices of m of n points, drawn uniformly without replacement."""
    return np.sort(rng.permutation(n)[:m])


def factor_error(exact: Gram, approximate: Gram, rng: np.random.RandomState) -> tuple[float, float]:
    """Return estimates of ‖G − G'‖_F and ‖G‖_F, for G = `exact` and G' = `approximate`, from a sample of their rows."""
    which = choose(exact.n, min(PROBES, exact.n), rng)
    rows = to_numpy(exact.rows(which))
    return sampled_norm(rows - to_numpy(approximate.rows(which))), sampled_norm(rows)

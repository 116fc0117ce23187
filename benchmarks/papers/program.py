"""The kernel and the update rule of the program that accompanies paper 001 (gsne.py at cbc8e93), on all pairs.

The program normalises Q = (r + η)^(−β), but in its gradient the slope of Q is that of 1/(η + r^β), the kernel of eq.
13. So its steps do not descend a loss of either kernel. `OwnSlope` is the program, `Consistent` eq. 13 with the same
update rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import equipoise as eq

# The defaults of the program's function; its command line has the rate 500, at which the maps of Olivetti tear.
RATE = 100.0
SPREAD = 0.3  # standard deviation of the start
MOMENTUM, SWITCH = (0.5, 0.8), 50
EXAGGERATION, UNTIL = 4.0, 100
GAIN_UP, GAIN_DOWN, MIN_GAIN = 0.2, 0.8, 0.01
TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Consistent:
    """The α-divergence from P with the kernel of eq. 13: values and slope of 1/(η + r^β)."""

    alpha: float = -1.0
    beta: float = 2.0
    eta: float = 1.0

    def kernel(self, r: np.ndarray) -> np.ndarray:
        return 1 / (self.eta + r**self.beta)

    def slope_over_r(self, r: np.ndarray) -> np.ndarray:
        """Return k'(r)/r of 1/(η + r^β)."""
        return -self.beta * r ** (self.beta - 2) / (self.eta + r**self.beta) ** 2

    def gradient(self, P: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return 2/Z Σ_j (f'(q/p) − Σ q f'(q/p)) k'(r)/r (y_i − y_j), eq. 18 of the paper."""
        squares = (Y**2).sum(axis=1)
        r = np.sqrt(np.maximum(squares[:, None] + squares - 2 * Y @ Y.T, TINY))
        k = self.kernel(r)
        np.fill_diagonal(k, 0)
        Z = k.sum()
        q = np.maximum(k / Z, TINY)
        exponent = (self.alpha - 1) / 2
        force = (q / P) ** exponent / exponent  # f'_α up to a constant, which cancels
        np.fill_diagonal(force, 0)
        force -= (q * force).sum()
        force *= self.slope_over_r(r)
        np.fill_diagonal(force, 0)
        return (2 / Z) * (force.sum(axis=1)[:, None] * Y - force @ Y)

    def optimize(self, P: np.ndarray, n_iter: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the maps after 4/5 of the steps of the program's update rule, and after all, from its start."""
        Y = (SPREAD * np.random.RandomState(seed).standard_normal((len(P), 2))).astype(P.dtype)
        velocity, gains = np.zeros_like(Y), np.ones_like(Y)
        before = Y
        for step in range(n_iter):
            before = Y if step == n_iter * 4 // 5 else before
            gradient = self.gradient(P * P.dtype.type(EXAGGERATION) if step <= UNTIL else P, Y)
            turned = (gradient > 0) != (velocity > 0)
            gains = np.maximum(np.where(turned, gains + GAIN_UP, gains * GAIN_DOWN), MIN_GAIN).astype(P.dtype)
            velocity = MOMENTUM[step >= SWITCH] * velocity - RATE * gains * gradient
            Y = Y + velocity
            Y -= Y.mean(axis=0)
        return np.asarray(before, dtype=np.float64), np.asarray(Y, dtype=np.float64)


@dataclass(frozen=True)
class OwnSlope(Consistent):
    """The program: values of (r + η)^(−β), slope of 1/(η + r^β)."""

    def kernel(self, r: np.ndarray) -> np.ndarray:
        return 1 / (r + self.eta) ** self.beta


def affinities(X: np.ndarray, perplexity: float) -> np.ndarray:
    """Return the dense joint P of X in float32, positive off the diagonal so that q/p is finite."""
    P = eq.TSNE(perplexity=perplexity, engine="exact", n_jobs=1).problem(X).affinities
    P = np.asarray(P.toarray() if hasattr(P, "toarray") else P, dtype=np.float32)
    return np.maximum(P, TINY)

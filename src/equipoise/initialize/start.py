"""Computes the initial map selected by `init`, scaled to the length of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._suggest import did_you_mean
from .._types import Array, Matrix
from ..data.checks.maps import check_map
from ..geometry import Geometry
from ..inputs import Input
from ..kernels import Kernel
from ..progress import stage
from .random import random_ball
from .spectral import spectral

INITS = ("auto", "pca", "spectral", "random")


class Start:
    """Computes the initial map (n, d) selected by `init`, which is checked on construction.

    The map has a standard deviation of `kernel.spread` kernel lengths, unless it is user-supplied. "spectral" is
    computed from the affinities, other initial maps from the data.
    """

    def __init__(self, init: Any, data: Input, d: int, kernel: Kernel, geometry: Geometry):
        self.data, self.d, self.geometry = data, d, geometry
        self.unit = kernel.spread * kernel.length
        self.user_map: Array | None = None
        self.name = "array"
        if not isinstance(init, str):
            self.user_map = self._check(init)
        else:
            check_init_name(init)
            self.name = init if init != "auto" else "pca" if data.has_principal else "spectral"

    def _check(self, init: Any) -> Array:
        Y = check_init(init, self.data.n, self.d)
        try:
            self.geometry.work(Y)
        except ValueError as error:
            raise ValueError(f"init: {error}") from None
        return Y

    def from_data(self, rng: np.random.RandomState) -> Array | None:
        """Return the initial map; None for "spectral", which `from_affinities` computes."""
        if self.user_map is not None or self.name == "spectral":
            return self.user_map
        stage("initial map")
        n, d = self.data.n, self.d
        Y = random_ball(n, d, rng) if self.name == "random" else self.data.principal(d, rng)
        return self.geometry.start(Y * self.unit)

    def from_affinities(self, W: Matrix, rng: np.random.RandomState) -> Array:
        """Return the spectral initial map of symmetric affinities W (n, n)."""
        stage("initial map")
        return self.geometry.start(spectral(W, self.d, rng) * self.unit)


def check_init_name(init: Any, known: Sequence[str] = INITS) -> None:
    """Raise ValueError if `init` is text, but not one of the known names; a map is not checked here."""
    if isinstance(init, str) and init not in known:
        names = ", ".join(map(repr, known))
        meant = did_you_mean(init, known, f"init must be {names} or an array (n, d)")
        raise ValueError(f"unknown init {init!r}; {meant}")


def check_init(init: Any, n: int, d: int) -> Array:
    """Return a copy of a user-supplied initial map, float64 (n, d)."""
    return np.array(check_map(init, "init", (n, d)))

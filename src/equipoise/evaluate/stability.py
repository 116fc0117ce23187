"""How much of a map is the data's, and how much the run's: the same again with other seeds, points or noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._types import Array
from ..procrustes import mean_map, superimpose, variation
from .checks import check_k
from .neighborhood import neighbor_recall
from .variants import Variants

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Where the sentences change. Chosen: a tenth of the radius is little more than the size of a dot in most pictures, a
# point with half of it may be on the other side of the map, and two thirds of the neighbours are most of them.
STILL = 0.1
ADRIFT = 0.5
MOST = 2 / 3


@dataclass(frozen=True, repr=False)
class Stability:
    """Maps of several runs laid over one another, and how far each point moves between them.

    Attributes
    ----------
    name : the method
    causes : in what the runs differ, in words
    maps : (runs, n, d), laid over their common mean, whose radius is 1; NaN where a run did not have a point
    mean : (n, d), the mean place of each point
    variation : (n,), root mean square distance of a point from its mean place, in radii of the map (docs/math.md,
        section 20): 0 in the same place in every run, about 1 anywhere; NaN for points of fewer than two runs
    kept : (n,), share of a point's k nearest in one map that are among its k nearest in the next, over their common
        points; NaN where it was not measured
    k : how many neighbours
    losses : (runs,), NaN for methods that have none
    """

    name: str
    causes: str
    maps: Array
    mean: Array
    variation: Array
    kept: Array
    k: int
    losses: Array

    @property
    def sentences(self) -> list[str]:
        """What may and may not be read from one of these maps."""
        median, kept = float(np.nanmedian(self.variation)), float(np.nanmean(self.kept))
        if median < STILL:
            first = "Places may be read: half of the points stay within a tenth of the map's radius."
        elif kept > MOST:
            first = "Read groups and neighbours, not places: neighbours stay together, but lie elsewhere in each run."
        else:
            first = "One map is one of many: neither places nor neighbours are the same in the next run."
        adrift = int((self.variation > ADRIFT).sum())
        if not adrift or median >= ADRIFT:
            return [first]
        points = "1 point has no place" if adrift == 1 else f"{adrift} points have no place"
        return [first, f"{points} of their own (variation above {ADRIFT:g}): `variation` says which."]

    def __str__(self) -> str:
        runs, n, _ = self.maps.shape
        q50, q90 = np.nanquantile(self.variation, [0.5, 0.9])
        lines = [
            f"{self.name}: {runs} runs with {self.causes}, {n} points",
            f"variation           median {q50:.3f}, nine in ten below {q90:.3f} (0 same place, 1 anywhere)",
            f"neighbours kept     {np.nanmean(self.kept):.1%} of the {self.k} nearest, from run to run",
        ]
        if np.isfinite(self.losses).all():
            lines.append(f"loss                {self.losses.min():.4g} to {self.losses.max():.4g}")
        missing = int(np.isnan(self.variation).sum())
        if missing:
            lines.append(f"not judged          {missing} points that are in fewer than two runs")
        return "\n".join([*lines, *self.sentences])

    __repr__ = __str__

    def figure(self, labels: Any = None) -> Figure:
        """Return a figure: the mean map coloured by variation, how it is distributed, and some of the runs."""
        from .figures.stability_figure import stability_figure

        return stability_figure(self, labels)


def stability(
    method: Any,
    X: Any,
    *,
    runs: int = 8,
    subsample: float = 1.0,
    noise: float = 0.0,
    k: int = 10,
    random_state: Any = 0,
) -> Stability:
    """Run a method several times and return how far each point moves, v_i = √(Σ_r ‖y_i^r − ȳ_i‖² / (m_i − 1)).

    Every run has another seed. The maps are laid over one another by a shift, a rotation or reflection, and their
    size, none of which a map means (generalised Procrustes).

    Parameters
    ----------
    method : an unfitted estimator with `fit_transform`, of this package or another; it is left as it is
    X : what the method takes
    runs : number of runs, 2 or more
    subsample : share of the points that each run gets, drawn anew
    noise : standard deviation of Gaussian noise on each column, as a part of the column's own, drawn anew
    k : nearest neighbours in the map that are compared from run to run
    random_state : seed of the seeds, parts and noise

    >>> import equipoise as eq
    >>> X = eq.data.load("iris").X
    >>> found = eq.stability(eq.PCA(), X, runs=3)  # a closed form: no seed moves it
    >>> bool(found.variation.max() < 1e-6)
    True
    """
    if not (isinstance(runs, int | np.integer) and runs >= 2):
        raise ValueError(f"runs must be a whole number of at least 2, got {runs!r}")
    seeded = "random_state" in method.get_params()
    if not seeded and subsample == 1 and not noise:
        raise ValueError(f"{_name(method)} has no random_state to change; let runs differ by subsample or noise")
    variants = Variants(method, X, subsample, noise)
    rng = check_random_state(random_state)
    generators = [np.random.RandomState(rng.randint(2**31 - 1)) for _ in range(runs)]
    rows = [variants.draw_rows(draws) for draws in generators]
    _check_common(rows, check_k(k, variants.n), subsample)
    found, losses = [], []
    for draws, part in zip(generators, rows, strict=True):
        again = clone(method)
        if seeded:
            again.set_params(random_state=int(draws.randint(2**31 - 1)))
        found.append(np.asarray(again.fit_transform(variants.make(part, draws))))
        losses.append(float(getattr(again, "loss_", np.nan)))
    maps = np.full((runs, variants.n, found[0].shape[1]), np.nan)
    for r, Y in enumerate(found):
        maps[r, rows[r]] = Y
    maps = superimpose(maps)
    return Stability(
        _name(method),
        _causes(seeded, subsample, noise),
        maps,
        mean_map(maps),
        variation(maps),
        neighbors_kept(maps, k),
        k,
        np.array(losses),
    )


def neighbors_kept(maps: Array, k: int) -> Array:
    """Return for each point the share of its k nearest in one of the maps (m, n, d) that are so in the next.

    The last is compared with the first. Each comparison is on the points that both maps have; NaN for points that no
    two maps in a row have.
    """
    total, count = np.zeros(maps.shape[1]), np.zeros(maps.shape[1])
    for r, following in _in_a_row(len(maps)):
        both = np.flatnonzero(~np.isnan(maps[[r, following], :, 0]).any(axis=0))
        measured = neighbor_recall(maps[r, both], maps[following, both], k)
        total[both[measured.points]] += np.asarray(measured.values)
        count[both[measured.points]] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _in_a_row(runs: int) -> list[tuple[int, int]]:
    """Return which maps are compared: each with the next, and of more than two the last with the first."""
    return [(r, (r + 1) % runs) for r in range(runs if runs > 2 else 1)]


def _check_common(rows: list[Array], k: int, subsample: float) -> None:
    common = min(len(np.intersect1d(rows[r], rows[following])) for r, following in _in_a_row(len(rows)))
    if common <= k:
        raise ValueError(
            f"subsample={subsample:g} leaves two runs {common} points in common, and to compare {k} neighbours takes"
            " more; let each run have a larger part"
        )


def _name(method: Any) -> str:
    return " ".join(str(method).split())


def _causes(seeded: bool, subsample: float, noise: float) -> str:
    parts = [
        "other seeds" if seeded else "",
        f"{subsample:.0%} of the points" if subsample < 1 else "",
        f"noise of {noise:g}" if noise else "",
    ]
    named = [part for part in parts if part]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"

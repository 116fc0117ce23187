"""Measure the stability of a method: how far points move between runs with different seeds, samples or noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from .._plural import plural
from .._types import Array
from ..arrays.namespace import check_random_state, is_integer, to_numpy
from ..procrustes import mean_map, superimpose, variation
from .checks import check_k
from .curved_map import require_flat
from .neighborhood import neighbor_recall
from .variants import Variants

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Thresholds of the sentences, chosen: in most figures a tenth of the radius is little more than the size of a dot, and
# a point that moves by half the radius may be on the other side of the map.
STABLE = 0.1  # median variation
UNSTABLE = 0.5  # variation of a point
MOST = 2 / 3  # fraction of neighbours preserved
MOST_RUNS = 100_000  # far more than anyone needs; without a limit, drawing their seeds alone could take forever


@dataclass(frozen=True, repr=False)
class Stability:
    """Aligned maps of several runs, and how far each point moves between them.

    Attributes
    ----------
    name : str
        The method and its parameters.
    causes : str
        How the runs differ, in words.
    maps : ndarray of shape (runs, n, d)
        The maps, aligned with their mean map; NaN for points that were not part of a run. In the mean map, the
        root mean square distance of the points from their centroid, called the radius, is 1.
    mean : ndarray of shape (n, d)
        Mean position of each point over the runs that contain it; NaN if none does.
    variation : ndarray of shape (n,)
        Root mean square distance of a point from its mean position, in units of the radius of the map (docs/math.md,
        section 20). It is 0 if the point is at the same position in every run, about 1 if its position is random, and
        NaN if it is in fewer than two runs.
    kept : ndarray of shape (n,)
        Mean fraction of a point's k nearest neighbours in one map that are among its k nearest in the next map. Only
        the points that are in both maps are compared; NaN for points that were not compared.
    k : int
        Number of neighbours.
    losses : ndarray of shape (runs,)
        Final loss of each run; NaN for methods without a loss.
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
        """What can and cannot be read from a single map."""
        median, kept = float(np.nanmedian(self.variation)), float(np.nanmean(self.kept))
        if median < STABLE:
            first = "Positions are reliable: half of the points stay within a tenth of the map's radius."
        elif kept > MOST:
            first = "Read groups and neighbours, not positions: neighbours stay together, but move between runs."
        else:
            first = "A single map is not reliable: both positions and neighbours change from run to run."
        unstable = int((self.variation > UNSTABLE).sum())
        if not unstable or median >= UNSTABLE:
            return [first]
        points = "1 point has" if unstable == 1 else f"{unstable} points have"
        return [first, f"{points} no stable position (variation above {UNSTABLE:g}): see `variation`."]

    def __str__(self) -> str:
        runs, n, _ = self.maps.shape
        q50, q90 = np.nanquantile(self.variation, [0.5, 0.9])
        lines = [
            f"{self.name}: {runs} runs with {self.causes}, {n:,} points",
            f"variation           median {q50:.3f}, 90% of the points below {q90:.3f} (0 fixed, 1 random)",
            f"neighbours kept     {np.nanmean(self.kept):.1%} of the {self.k} nearest, from run to run",
        ]
        if np.isfinite(self.losses).all():
            lines.append(f"loss                {self.losses.min():.4g} to {self.losses.max():.4g}")
        missing = int(np.isnan(self.variation).sum())
        if missing:
            lines.append(f"not measured        {plural(missing, 'point')} in fewer than two runs")
        return "\n".join([*lines, *self.sentences])

    __repr__ = __str__

    def figure(self, labels: Any = None) -> Figure:
        """Return a figure of the mean map coloured by variation, up to three runs, and a histogram of the variation.

        Parameters
        ----------
        labels : array-like of shape (n,), optional
            The classes by which points are coloured in the runs; by default the colour shows the mean position from
            left to right.
        """
        from .figures.stability_figure import stability_figure

        median, kept = float(np.nanmedian(self.variation)), np.nanmean(self.kept)
        title = f"{self.name}: {self.causes}\nmedian variation {median:.3f}, neighbours kept {kept:.0%}"
        return stability_figure(self.maps, self.mean, self.variation, title, labels)


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
    """Run a method several times and measure how far each point moves, v_i = √(Σ_r ‖y_i^r − ȳ_i‖² / (m_i − 1)).

    Here y_i^r is the position of point i in run r, ȳ_i is its mean position, and m_i is the number of runs with point
    i. Each run has a different seed if the method has a `random_state`. Before the comparison, the maps are aligned by
    translation, rotation, reflection and scaling, because these have no meaning (generalised Procrustes).

    Parameters
    ----------
    method : estimator
        An unfitted estimator with `fit_transform`, of this or another package; it is not modified.
    X : array-like
        The data, as for `method.fit`.
    runs : int, default=8
        Number of runs, from 2 to 100,000.
    subsample : float, default=1.0
        Fraction of the points in each run, drawn at random for each run; must be 1 if X is given as neighbour lists.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to each column of X, relative to the standard deviation of the
        column; drawn anew for each run. Must be 0 unless X is a dense table.
    k : int, default=10
        Number of nearest neighbours compared between runs.
    random_state : int or RandomState, default=0
        Seed of the runs, samples and noise.

    Returns
    -------
    stability : Stability

    Examples
    --------
    >>> import equipoise as eq
    >>> X = eq.data.load("iris").X
    >>> result = eq.stability(eq.PCA(), X, runs=3)  # by default, PCA uses no random numbers
    >>> bool(result.variation.max() < 1e-6)
    True
    """
    if not (is_integer(runs) and 2 <= runs <= MOST_RUNS):
        raise ValueError(f"runs={runs!r} is not an integer from 2 to {MOST_RUNS}; pass how many runs to compare")
    seeded = "random_state" in method.get_params()
    require_flat(method, "stability")
    if not seeded and subsample == 1 and not noise:
        raise ValueError(
            f"{_name(method)} has no random_state, so all runs would be equal; set subsample below 1 or noise above 0"
        )
    variants = Variants(method, X, subsample, noise)
    rng = check_random_state(random_state)
    generators = [np.random.RandomState(rng.randint(2**31 - 1)) for _ in range(runs)]
    rows = [variants.draw_rows(draws) for draws in generators]
    _check_common(rows, check_k(k, variants.n), subsample)
    embeddings, losses = [], []
    for draws, part in zip(generators, rows, strict=True):
        estimator = clone(method)
        if seeded:
            estimator.set_params(random_state=int(draws.randint(2**31 - 1)))
        embeddings.append(to_numpy(estimator.fit_transform(variants.make(part, draws))))
        losses.append(float(getattr(estimator, "loss_", np.nan)))
    maps = np.full((runs, variants.n, embeddings[0].shape[1]), np.nan)
    for r, Y in enumerate(embeddings):
        maps[r, rows[r]] = Y
    maps = superimpose(maps)
    return Stability(
        _name(method),
        _describe_causes(seeded, subsample, noise),
        maps,
        mean_map(maps),
        variation(maps),
        neighbors_kept(maps, k),
        k,
        np.array(losses),
    )


def neighbors_kept(maps: Array, k: int) -> Array:
    """Return for each point the fraction of its k nearest points in one map that are among its k nearest in the next.

    The fractions (n,) are averages over all comparisons of two successive maps of `maps` (m, n, d). If there are more
    than two maps, the last map is also compared with the first. Each comparison uses the points that are in both maps.
    The fraction is NaN for points that were not compared.
    """
    total, count = np.zeros(maps.shape[1]), np.zeros(maps.shape[1])
    for r, following in _consecutive(len(maps)):
        both = np.flatnonzero(~np.isnan(maps[[r, following], :, 0]).any(axis=0))
        measured = neighbor_recall(maps[r, both], maps[following, both], k)
        total[both[measured.points]] += np.asarray(measured.values)
        count[both[measured.points]] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _consecutive(runs: int) -> list[tuple[int, int]]:
    """Return the pairs of maps to compare: each with the next, and the last with the first if there are more than 2."""
    return [(r, (r + 1) % runs) for r in range(runs if runs > 2 else 1)]


def _check_common(rows: list[Array], k: int, subsample: float) -> None:
    common = min(len(np.intersect1d(rows[r], rows[following])) for r, following in _consecutive(len(rows)))
    if common <= k:
        raise ValueError(
            f"with subsample={subsample:g} two runs have only {plural(common, 'point')} in common, too few to compare"
            f" {plural(k, 'neighbour')}; use a larger subsample or a smaller k"
        )


def _name(method: Any) -> str:
    return " ".join(str(method).split())


def _describe_causes(seeded: bool, subsample: float, noise: float) -> str:
    parts = [
        "different seeds" if seeded else "",
        f"{subsample:.0%} of the points" if subsample < 1 else "",
        f"noise of {noise:g}" if noise else "",
    ]
    named = [part for part in parts if part]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"

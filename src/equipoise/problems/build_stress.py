"""Builds the stress of MDS from its input: which residual, and which pairs, stored or recomputed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from .._types import Array, Matrix
from ..arrays.to_device import to_device
from ..data.checks.dissimilarities import check_size
from ..inputs import Distances, Input
from ..objectives.stress.metric import AllPairs, FromPoints, Listed, Metric, Stress
from ..objectives.stress.ordinal import OrdinalStress
from ..objectives.stress.worst_case import WorstCase
from .stress_pairs import condensed_weights, equal_rows, random_pairs, weights_of, zero_entry, zero_stored

# The residual of a pair for each kind of stress but the ordinal (docs/math.md, section 14).
RESIDUALS = {
    "metric": "absolute",
    "relative": "relative",
    "log": "logarithmic",
    "max": "absolute",
    "max_ratio": "logarithmic",
}
WORST_CASES = ("max", "max_ratio")
STRESSES = (*RESIDUALS, "ordinal")


def choose_engine(engine: str, kind: str, source: Input, W: Matrix | None, max_stored: int) -> str:
    """Return the engine of MDS for a kind of stress; raise if `engine` does not support the input or the stress.

    The parameter `engine` can be "auto". All pairs of up to `max_stored` points are stored by default.
    """
    is_sparse = source.sparse or sparse.issparse(W)
    worst_case = kind in WORST_CASES
    if engine == "auto":
        small = source.n <= max_stored or W is not None or source.known is not None
        large = "random_pairs" if not worst_case else "stored" if source.points is None else "recomputed"
        engine = "listed" if is_sparse else "stored" if small else large
    if worst_case and engine == "random_pairs":
        raise ValueError(f'stress="{kind}" compares all pairs; use engine="stored" or engine="recomputed"')
    if kind == "ordinal" and engine == "torch":
        raise ValueError('engine="torch" does not support stress="ordinal"; use engine="stored" with dense input')
    if kind == "ordinal" and (engine != "stored" or is_sparse):
        raise ValueError(
            'stress="ordinal" ranks all pairs and needs dense input and engine="stored", which is the default up to'
            f" {max_stored} points; got engine={engine!r} and {'sparse' if is_sparse else 'dense'} input for"
            f" {source.n} points"
        )
    if engine == "recomputed" and (source.points is None or W is not None):
        raise ValueError(
            'engine="recomputed" needs a dense table (n, D) with the Euclidean metric and no weights; use engine="auto"'
        )
    if engine == "random_pairs" and (W is not None or source.known is not None):
        raise ValueError('engine="random_pairs" does not support weights or missing distances; use engine="auto"')
    if engine == "torch" and is_sparse:
        raise ValueError('engine="torch" compares all pairs; for sparse weights or distances use engine="listed"')
    if engine == "listed" and not is_sparse:
        raise ValueError('engine="listed" needs sparse weights or distances; for dense input use engine="auto"')
    if is_sparse and engine != "listed":
        raise ValueError(f'engine={engine!r} needs dense input; for sparse weights or distances use engine="listed"')
    return engine


@dataclass(frozen=True)
class StressInput:
    """The input of a stress.

    Attributes
    ----------
    source : Input
        The data.
    W : ndarray or csr_matrix of shape (n, n), or None
        Weights of the pairs; None if all are 1.
    known : csr_matrix of shape (n, n), or None
        The known dissimilarities of positive weight; None if all are known and have a positive weight.
    engine : str
        The engine of MDS, except "auto".
    device : str
        Device for engine="torch".
    max_stored : int
        Points up to which engine="torch" stores the Euclidean distances of a table.
    n_threads : int
    """

    source: Input
    W: Matrix | None
    known: Matrix | None
    engine: str
    device: str
    max_stored: int
    n_threads: int

    def build(self, kind: str, rng: np.random.RandomState) -> tuple[Stress, Input]:
        """Return a stress of one of the STRESSES, and the input of its initial map.

        The latter is the ranks of δ for ordinal stress on the CPU, and `source` otherwise.
        """
        if kind == "ordinal":
            delta, w = self._condensed(np.float64)
            return OrdinalStress(delta, self.source.n, self.n_threads, w), Distances(squareform(rankdata(delta)))
        pairs = self._pairs(kind, rng)
        return WorstCase(pairs) if kind in WORST_CASES else pairs, self.source

    def _pairs(self, kind: str, rng: np.random.RandomState) -> Metric:
        source, residual, n_threads = self.source, RESIDUALS[kind], self.n_threads
        if self.engine == "torch":
            return self._on_device(kind)
        if self.engine == "recomputed":
            assert source.points is not None
            if residual != "absolute":
                _require_none(equal_rows(source.points), kind)
            return FromPoints(source.points, n_threads, residual)
        if self.engine == "stored":
            delta, w = self._distances(kind)
            return AllPairs(delta, source.n, n_threads, w, residual)
        if self.engine == "random_pairs":
            pattern = random_pairs(source.n, rng.randint(2**31 - 1))
            delta = source.stored_pairs(pattern, n_threads)
        else:
            assert self.known is not None
            delta, pattern = self.known.data, weights_of(self.known, self.W)
        check_size(float(delta.max(initial=0.0)))
        if residual != "absolute":
            _require_none(zero_stored(delta, pattern), kind)
        return Listed(delta, pattern, n_threads, residual)

    def _distances(self, kind: str) -> tuple[Array, Array]:
        """Return δ of the pairs i < j in float32, positive if residuals divide by them, and the weights."""
        delta, w = self._condensed(np.float32)
        if RESIDUALS[kind] != "absolute":
            _require_none(zero_entry(delta, w), kind)
            if len(w):
                delta[w == 0] = 1.0  # any positive number: their weight is 0
        return delta, w

    def _condensed(self, dtype: type[np.floating]) -> tuple[Array, Array]:
        """Return δ and the weights of the pairs i < j; the weights are empty if all are 1."""
        delta = self.source.condensed(dtype, self.n_threads)
        w = condensed_weights(delta, self.W)
        check_size(float(delta.max(initial=0.0)))
        return delta, w

    def _on_device(self, kind: str) -> Metric:
        """Return the stress over all pairs on a PyTorch device.

        The Euclidean distances of a table are stored on the device for up to `max_stored` points; for more, they are
        recomputed at every evaluation. All other distances are stored.
        """
        from ..objectives.stress.torch_stress import DeviceStress, Recomputed, Stored

        source, W, residual = self.source, self.W, RESIDUALS[kind]
        if source.points is not None and (W is None or residual == "absolute"):
            if residual != "absolute":
                _require_none(equal_rows(source.points), kind)
            points = Recomputed(to_device(source.points, self.device))
            weights = None if W is None else to_device(W - np.diag(W.diagonal()), self.device).float()
            return DeviceStress(points.stored() if source.n <= self.max_stored else points, weights, residual)
        delta, w = self._distances(kind)
        weights = to_device(squareform(w), self.device) if len(w) else None
        return DeviceStress(Stored(to_device(squareform(delta), self.device)), weights, residual)


def _require_none(pair: tuple[int, int] | None, kind: str) -> None:
    """Raise if there is a pair of points at distance 0."""
    if pair is not None:
        raise ValueError(
            f'stress="{kind}" needs positive distances, but points {pair[0]} and {pair[1]} are at distance 0; remove'
            ' one of them, set the weight of the pair to 0, or use stress="metric"'
        )

"""Store all measures of one map, without the sentences that `Report` adds to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._types import Array
from ..geometry import Geometry
from .distances import LowestStress, Shepard, Stress
from .local_isometry import LocalIsometry
from .measured import Measured, RecallCurve
from .ranks import Neighborhoods


@dataclass(frozen=True, repr=False)
class MapMeasures:
    """Stores the measures of one map; `Report` documents the attributes."""

    Y: Array
    geometry: Geometry | None
    labels: Array | None
    k: int
    about: str
    neighborhoods: Neighborhoods
    trustworthiness: Measured
    continuity: Measured
    recall: Measured
    recall_curve: RecallCurve
    triplet_accuracy: Measured
    shepard: Shepard
    stress: Stress
    lowest_stress: LowestStress
    density_correlation: Measured
    class_errors: tuple[Measured, Measured] | None
    centroid_correlation: Measured | None
    local: LocalIsometry | None = None
    remaining_gain: float | None = None
    space: Geometry | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.Y)

    @property
    def points(self) -> Array:
        """The rows for which the local measures were computed, in increasing order."""
        return self.neighborhoods.points

    @property
    def trust(self) -> Array:
        """Trustworthiness of each measured point.

        It is below 1 if some of the point's neighbours in the map are not its neighbours in the data.
        """
        return _values(self.trustworthiness)

    @property
    def continuity_of_points(self) -> Array:
        """Continuity of each measured point.

        It is below 1 if some of the point's neighbours in the data are not its neighbours in the map.
        """
        return _values(self.continuity)

    @property
    def kept(self) -> Array:
        """Fraction of each measured point's k nearest points in the data that are among its k nearest in the map."""
        return _values(self.recall)

    @cached_property
    def stretch(self) -> float:
        """Ratio of the 95 % to the 5 % quantile of the dilation.

        The dilation of a pair of points is their distance in the map divided by their distance in the data. The pairs
        are those of `shepard` with a positive distance in the data. The ratio is 1 if the map has the same scale
        everywhere, and infinite if the 5 % quantile is 0.
        """
        distinct = self.shepard.d_x > 0
        low, high = np.quantile(self.shepard.d_y[distinct] / self.shepard.d_x[distinct], (0.05, 0.95))
        return float(high / low) if low > 0 else np.inf


def _values(measured: Measured) -> Array:
    assert measured.values is not None
    return measured.values

"""Turn the measures of a map into sentences: what can be read from it, what with care, and what cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..methods.estimator import LARGE_GAIN
from .local_isometry import LocalIsometry
from .map_measures import MapMeasures

READ, CARE, NOT = "read", "with care", "do not read"


class Limits(NamedTuple):
    """Thresholds of a measure: a value of at least `read` is reliable, one below `care` is unreliable.

    A value between the two needs care.
    """

    read: float
    care: float

    def verdict(self, value: float) -> str:
        """Return READ, CARE or NOT; NaN gives NOT."""
        return READ if value >= self.read else CARE if value >= self.care else NOT


# All limits are chosen: they rate groups and gaps in a t-SNE map of digits as reliable, but not distances and sizes.
NEAR = Limits(0.95, 0.85)  # trustworthiness and continuity; a random map has 0.5
KEPT = Limits(0.75, 0.5)  # fraction of the k nearest neighbours preserved
ORDER = Limits(0.9, 0.75)  # fraction of triplets in the right order; a random map has 0.5
RANKS = Limits(0.9, 0.75)  # rank correlation of distances, and of densities; a random map has 0
STRETCH = Limits(-1.5, -3.0)  # minus the ratio of the 95 % to the 5 % quantile of the dilation; the best ratio is 1
CLASSES = 0.02  # class errors in map and data that differ by less count as equal


@dataclass(frozen=True)
class Reading:
    """Whether one feature of a map, such as its gaps, can be trusted.

    Attributes
    ----------
    about : str
        The feature.
    verdict : str
        "read", "with care" or "do not read".
    text : str
        A sentence with the numbers behind the verdict.
    """

    about: str
    verdict: str
    text: str

    def __str__(self) -> str:
        return self.text


# The sentences for each feature and verdict.
SENTENCES = {
    "groups of near points": {
        READ: "Points that lie together in the map lie together in the data",
        CARE: "Points that lie together in the map mostly lie together in the data, but some come from elsewhere",
        NOT: "Points that lie together in the map often come from different places in the data",
    },
    "gaps": {
        READ: "Neighbours in the data are rarely separated in the map, so few lie across a gap",
        CARE: "Some neighbours in the data are separated in the map: a gap may cut through a connected group",
        NOT: "Many neighbours in the data are separated in the map: a gap in the map need not be one in the data",
    },
    "single neighbours": {
        READ: "Most of the nearest points in the map are the nearest in the data",
        CARE: "The nearest points in the map are only a rough guide to the nearest in the data",
        NOT: "Most of the nearest points in the map are not the nearest in the data",
    },
    "distances between groups": {
        READ: "Points farther apart in the map are mostly farther apart in the data",
        CARE: "The overall arrangement is roughly that of the data, but single distances are not reliable",
        NOT: "How far apart two groups are, and which groups are next to each other, says little about the data",
    },
    "sizes": {
        READ: "Lengths and sizes can be compared across the map",
        CARE: "Lengths and sizes can be compared only where they differ greatly",
        NOT: "Neither lengths nor the sizes of groups can be compared",
    },
    "small shapes": {
        READ: "Small shapes are nearly those of the data",
        CARE: "Small shapes are somewhat distorted",
        NOT: "Small shapes are distorted",
    },
    "densities": {
        READ: "Dense regions of the map are dense in the data",
        CARE: "Dense regions of the map are often, but not always, dense in the data",
        NOT: "A dense region of the map need not be dense in the data",
    },
}


def interpret(measures: MapMeasures) -> tuple[Reading, ...]:
    """Return a reading of each feature of a map, such as groups, gaps and densities."""
    T, C, recall = float(measures.trustworthiness), float(measures.continuity), float(measures.recall)
    triplets, shepard = float(measures.triplet_accuracy), float(measures.shepard.correlation)
    density, k = float(measures.density_correlation), measures.k
    low = f"{(measures.trust < NEAR.care).mean():.1%}"
    doubtful = f"; {low} of the points have a trust below {NEAR.care:g}" if low != "0.0%" else ""
    readings: tuple[Reading, ...] = (
        _reading("groups of near points", NEAR.verdict(T), f" (trustworthiness {T:.3f}{doubtful})"),
        _reading("gaps", NEAR.verdict(C), f" (continuity {C:.3f})"),
        _reading("single neighbours", KEPT.verdict(recall), f": {recall * k:.1f} of {k} agree on average"),
        _reading(
            "distances between groups",
            _worse(ORDER.verdict(triplets), RANKS.verdict(shepard)),
            f" ({triplets:.0%} of triplets are in the right order, 50% by chance; rank correlation {shepard:.2f})",
        ),
        _reading(
            "sizes",
            STRETCH.verdict(-measures.stretch),
            _describe_stretch(measures.stretch),
        ),
        _reading("densities", RANKS.verdict(density), f" (rank correlation of the neighbour distances {density:.2f})"),
    )
    shapes = () if measures.local is None else (_interpret_shapes(measures.local),)
    classes = () if measures.class_errors is None else (_interpret_classes(*measures.class_errors),)
    return (*readings, *shapes, *classes, *_interpret_gain(measures.remaining_gain))


def _reading(about: str, verdict: str, numbers: str) -> Reading:
    return Reading(about, verdict, f"{SENTENCES[about][verdict]}{numbers}.")


def _describe_stretch(stretch: float) -> str:
    if np.isinf(stretch):  # the 5% quantile of d_y / d_x is 0
        return ": at least 5% of the pairs coincide in the map although they differ in the data"
    return (
        ": equal lengths in the map correspond to distances in the data that differ up to"
        f" {stretch:.1f}-fold, for 90% of the pairs"
    )


def _interpret_shapes(local: LocalIsometry) -> Reading:
    """Return the reading of the local scales, relative to their median, and of the anisotropy."""
    known = np.flatnonzero(np.isfinite(local.scale))
    scale = local.scale[known]
    order = np.argsort(scale, kind="stable")
    low, middle, high = (int(order[round(share * (len(order) - 1))]) for share in (0.05, 0.5, 0.95))
    least, most = (scale[at] / scale[middle] if scale[middle] > 0 else np.nan for at in (low, high))
    rows = local.points[known]
    numbers = (
        f": distances to neighbours are stretched by {least:.2g} (near row {rows[low]}) to {most:.2g} (near row"
        f" {rows[high]}) times the median"
    )
    verdict = STRETCH.verdict(-most / least if least > 0 else -np.inf)
    if local.stretch.shape[1] > 1:
        anisotropy = float(np.median(local.anisotropy[known]))
        verdict = _worse(verdict, STRETCH.verdict(-anisotropy))
        numbers += f", typically {anisotropy:.1f} times as much in one direction as in another"
    return _reading("small shapes", verdict, numbers)


def _interpret_classes(in_map: float, in_data: float) -> Reading:
    numbers = (
        f"the nearest neighbour has another class for {in_map:.1%} of the points in the map, {in_data:.1%} in the data"
    )
    if in_map > in_data + CLASSES:
        return Reading("classes", CARE, f"Classes mix more in the map than in the data: {numbers}.")
    if in_map < in_data - CLASSES:
        return Reading("classes", CARE, f"Classes are more separated in the map than in the data: {numbers}.")
    return Reading("classes", READ, f"Classes mix in the map as much as in the data: {numbers}.")


def _interpret_gain(gain: float | None) -> tuple[Reading, ...]:
    """Return a reading if the optimisation ended while the loss was still decreasing by much."""
    if gain is None or not gain > LARGE_GAIN:
        return ()
    amount = "by an unknown amount" if np.isinf(gain) else f"by up to about {gain:.0%}"
    text = (
        "The optimisation stopped early, so the map may still change: further iterations would lower the loss"
        f' {amount}; fit again with n_iter="auto".'
    )
    return (Reading("convergence", CARE, text),)


def _worse(*verdicts: str) -> str:
    return max(verdicts, key=(READ, CARE, NOT).index)

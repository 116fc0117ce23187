"""From numbers to plain sentences: what may be read from a map, what with care, and what not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .report import Report

READ, CARE, NOT = "read", "with care", "do not read"


class Limits(NamedTuple):
    """A number at least `read` may be read from the map, one at least `care` with care, and one below not."""

    read: float
    care: float

    def verdict(self, value: float) -> str:
        """Return READ, CARE or NOT; a value that is not a number is not read."""
        return READ if value >= self.read else CARE if value >= self.care else NOT


# All limits are chosen. By them one may read groups and gaps of the digits by t-SNE, and neither distances nor sizes.
NEAR = Limits(0.95, 0.85)  # trustworthiness and continuity; a random map has 0.5
KEPT = Limits(0.75, 0.5)  # share of the k nearest that are the same
ORDER = Limits(0.9, 0.75)  # share of triplets in the right order; a random map has 0.5
RANKS = Limits(0.9, 0.75)  # rank correlation of distances, and of densities; a random map has 0
STRETCH = Limits(-1.5, -3.0)  # minus the factor between the 5 % and the 95 % quantile of the dilation; 1 is best
CLASSES = 0.02  # errors of the nearest neighbour's class, in the map and in the data, that differ by less are alike


@dataclass(frozen=True)
class Reading:
    """What a map says about one thing, whether it may be believed, and the numbers behind."""

    about: str
    verdict: str
    text: str

    def __str__(self) -> str:
        return self.text


# What is said of each thing if it may be read, if it may with care, and if it may not.
SENTENCES = {
    "groups of near points": {
        READ: "Points that lie together in the map lie together in the data",
        CARE: "Points that lie together in the map mostly lie together in the data, but some were thrown in from afar",
        NOT: "Points that lie together in the map often come from different places in the data",
    },
    "gaps": {
        READ: "Neighbours in the data are rarely torn apart, so that few of them lie across a gap",
        CARE: "Some neighbours in the data are torn apart: a gap may run through what belongs together",
        NOT: "Many neighbours in the data are torn apart: a gap in the map need not be one in the data",
    },
    "single neighbours": {
        READ: "Most of the nearest points in the map are the nearest in the data",
        CARE: "The nearest points in the map are no more than a first guess at the nearest in the data",
        NOT: "Most of the nearest points in the map are not the nearest in the data",
    },
    "distances between groups": {
        READ: "What is farther apart in the map is mostly farther apart in the data",
        CARE: "The large plan of the map is roughly that of the data, and single distances are not",
        NOT: "How far apart two groups are, and which of them are next to each other, says little about the data",
    },
    "sizes": {
        READ: "Lengths and sizes can be compared across the map",
        CARE: "Lengths and sizes can be compared only where they differ much",
        NOT: "Neither lengths nor the sizes of groups can be compared",
    },
    "densities": {
        READ: "Where the map is crowded, the data are",
        CARE: "Crowded places of the map are often crowded in the data, and not always",
        NOT: "A crowded place in the map need not be crowded in the data",
    },
}


def read(report: Report) -> tuple[Reading, ...]:
    """Return a reading for each thing one might see in a map."""
    T, C, share = float(report.trustworthiness), float(report.continuity), float(report.recall)
    triplets, shepard = float(report.triplet_accuracy), float(report.shepard.correlation)
    density = float(report.density_correlation)
    few = f"{(report.trust < NEAR.care).mean():.1%}"
    strangers = f"; {few} of the points stand among strangers" if few != "0.0%" else ""
    found = (
        _reading("groups of near points", NEAR.verdict(T), f" (trustworthiness {T:.3f}{strangers})"),
        _reading("gaps", NEAR.verdict(C), f" (continuity {C:.3f})"),
        _reading("single neighbours", KEPT.verdict(share), f": {share * report.k:.1f} of {report.k} are, on average"),
        _reading(
            "distances between groups",
            _worse(ORDER.verdict(triplets), RANKS.verdict(shepard)),
            f" ({triplets:.0%} of triplets are in the right order, 50% by chance; rank correlation {shepard:.2f})",
        ),
        _reading(
            "sizes",
            STRETCH.verdict(-report.stretch),
            ": a length in the map stands for lengths in the data that differ up to"
            f" {report.stretch:.1f}-fold, in 90% of the pairs",
        ),
        _reading("densities", RANKS.verdict(density), f" (rank correlation of the spacing {density:.2f})"),
    )
    return found if report.class_errors is None else (*found, _classes(*report.class_errors))


def _reading(about: str, verdict: str, numbers: str) -> Reading:
    return Reading(about, verdict, f"{SENTENCES[about][verdict]}{numbers}.")


def _classes(in_map: float, in_data: float) -> Reading:
    numbers = f"the nearest point has another class for {in_map:.1%} of the points, {in_data:.1%} in the data"
    if in_map > in_data + CLASSES:
        return Reading("classes", CARE, f"Classes mix more in the map than in the data: {numbers}.")
    if in_map < in_data - CLASSES:
        return Reading("classes", CARE, f"Classes lie more apart in the map than in the data: {numbers}.")
    return Reading("classes", READ, f"Classes mix in the map as much as they do in the data: {numbers}.")


def _worse(*verdicts: str) -> str:
    return max(verdicts, key=(READ, CARE, NOT).index)

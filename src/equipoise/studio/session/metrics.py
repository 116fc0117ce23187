"""Lists the metrics of the studio, and those that a table allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.missing import is_frame_of_columns
from ...mixed import Mixed

AUTO = "auto"  # the first metric that a table allows


@dataclass(frozen=True)
class Metric:
    """A metric that the user can choose: its title, the argument `metric` of a method, and that argument as code."""

    title: str
    value: Any
    code: str

    @classmethod
    def named(cls, name: str, title: str) -> Metric:
        """Return the metric that the methods call `name`."""
        return cls(title, name, repr(name))


# Metrics of tables without gaps, of numbers with gaps, and of columns of every kind.
COMPLETE = {
    name: Metric.named(name, title)
    for name, title in {
        "euclidean": "Euclidean",
        "cosine": "cosine",
        "correlation": "correlation",
        "manhattan": "Manhattan",
        "chebyshev": "Chebyshev",
        "canberra": "Canberra",
        "braycurtis": "Bray-Curtis",
        "hamming": "Hamming",
    }.items()
}
WITH_GAPS = {"nan_euclidean": Metric.named("nan_euclidean", "Euclidean, pairwise over gaps")}
EVERY_KIND = {
    "mixed": Metric.named("mixed", "mixed (Gower)"),
    "mixed_mean": Metric("mixed, gaps filled by the mean", Mixed(missing="mean"), "eq.Mixed(missing='mean')"),
    "mixed_median": Metric("mixed, gaps filled by the median", Mixed(missing="median"), "eq.Mixed(missing='median')"),
}
METRICS = {**COMPLETE, **WITH_GAPS, **EVERY_KIND}


def check_metric(name: str) -> None:
    """Raise ValueError if there is no metric called `name`."""
    if name not in (AUTO, *METRICS):
        raise ValueError(f"unknown metric {name!r}; choose from {', '.join(METRICS)}")


def allowed_metrics(X: Any) -> tuple[str, ...]:
    """Return the names of the metrics that a table allows, the default first."""
    if is_frame_of_columns(X):
        return tuple(EVERY_KIND)
    if np.isnan(X).any():
        return (*EVERY_KIND, *WITH_GAPS)
    return (*COMPLETE, "mixed", *WITH_GAPS)


def resolve_metric(name: str, allowed: tuple[str, ...]) -> str:
    """Return the name of a metric, the first allowed one for "auto"; raise ValueError if the metric is not allowed."""
    if name == AUTO:
        return allowed[0]
    if name not in allowed:
        if allowed == tuple(EVERY_KIND):
            reason = "compares numbers, but the table has other columns"
        else:
            reason = "does not allow missing values" if name in COMPLETE else "fills in missing values; there are none"
        raise ValueError(f"the metric {name!r} {reason}; choose from {', '.join(allowed)}")
    return name

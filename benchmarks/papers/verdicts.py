"""Verdicts on the claims of the papers, and the rule by which a difference of two methods is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import common
import numpy as np
from scipy import stats

LEVEL = 0.95  # of Student's t over the draws: one-sided for “yes” and “no”, two-sided for intervals
CONVERGED = 0.02  # a run whose loss decreased by more than this part in its last fifth has not converged
MOST_DRAWS = 1000  # no larger number of draws is suggested


class Measure(NamedTuple):
    """The largest difference of a score that does not matter in practice, its unit, and how differences are printed."""

    margin: float
    unit: str
    form: str


# Fixed before the results on the page were computed (see git log).
MEASURES = {
    "error": Measure(0.5, " points of 1-NN error", ".2f"),
    "small error": Measure(0.2, " points of 1-NN error", ".2f"),  # COIL-20, whose errors are below 1 %
    "index": Measure(0.03, " of the Davies-Bouldin index", ".3f"),
    "clusters": Measure(2.0, " clusters", ".1f"),
    "cover": Measure(3.0, " points of cover", ".1f"),
    "silhouette": Measure(0.02, " of the silhouette", ".3f"),
    "kept": Measure(0.01, " of the neighbours kept", ".3f"),
    "accuracy": Measure(1.0, " points of accuracy", ".2f"),
    "loss": Measure(0.05, " of the initial loss", ".3f"),
    "preservation": Measure(10.0, " % of eq. (9)", ".1f"),
    "R²": Measure(0.02, " of R²", ".3f"),
}
RULE = (
    "Rule, fixed before these results were computed, with the numbers of draws. (A loaded machine made us read the"
    " results when two thirds of the draws were complete; the others were added as planned, whatever the verdict.) Two"
    " methods are compared on the same draws, and the differences"
    " are paired by draw unless stated. “Yes” and “no” need a difference that is significant at the one-sided 95 %"
    " level of Student's t over the draws. Otherwise, if the two-sided 95 % interval of the difference lies within the"
    " margin of the measure, the verdict is “no difference beyond” it; a “yes” or “no” within the margin says “by less"
    " than” it. Otherwise it is “not decided”, with the interval and the number of draws that would decide it if mean"
    " and spread stayed the same. A claim that two methods are alike is “yes” if the interval lies within the margin,"
    " and “no” if it does not and the difference is significant. Margins: 1-NN error 0.5 points (COIL-20: 0.2),"
    " Davies-Bouldin index 0.03, number of clusters 2, cover 3 points, silhouette 0.02, share of neighbours kept"
    " 0.01, accuracy 1 point, loss 0.05 of the initial loss, eq. (9) 10 %. “Starts only”: the same rows in every"
    " draw, so that the verdict is about random starts and not about other rows; “halves of the same rows”: the splits"
    " overlap, and the standard error is too small. “Not converged”: in some of the runs the loss decreased by more"
    f" than {CONVERGED:.0%} in the last fifth. The levels are not corrected for the number of rows: of twenty such rows"
    " without a true difference one would be decided. Rows without draws to compare (Table 3, Fig. 2 and 3) say in"
    " the evidence what they rest on."
)


class Verdict(NamedTuple):
    """One claim of a paper, what was found, and the evidence for it."""

    where: str
    claim: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Estimate:
    """Mean of a difference, its standard error, the degrees of freedom of that, and the number of draws."""

    mean: float
    error: float
    freedom: float
    draws: int

    @property
    def significant(self) -> bool:
        return abs(self.mean) > stats.t.ppf(LEVEL, self.freedom) * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """The two-sided interval of the mean."""
        half = float(stats.t.ppf((1 + LEVEL) / 2, self.freedom)) * self.error
        return self.mean - half, self.mean + half

    def within(self, margin: float) -> bool:
        low, high = self.interval
        return -margin <= low and high <= margin

    def with_draws(self, draws: int) -> Estimate:
        """Return the estimate expected from another number of draws with the same mean and spread."""
        share = self.draws / draws
        return Estimate(self.mean, self.error * np.sqrt(share), max(1.0, (self.freedom + 1) / share - 1), draws)


def lower(differences: Sequence[float], measure: str, over: str = "draws") -> str:
    """Return the verdict on the claim that the differences, paired by draw (or what they are `over`), are negative."""
    if len(differences) < 2:
        return _one_draw(float(np.mean(differences)), MEASURES[measure])
    return _decide(_paired(differences), MEASURES[measure], over)


def lower_of_two(first: Sequence[float], second: Sequence[float], measure: str) -> str:
    """Return the verdict on the claim that the first values are lower than the second ones, not paired (Welch)."""
    if min(len(first), len(second)) < 2:
        return _one_draw(float(np.mean(first) - np.mean(second)), MEASURES[measure])
    return _decide(_unpaired(first, second), MEASURES[measure])


def alike_of_two(first: Sequence[float], second: Sequence[float], measure: str) -> str:
    """Return the verdict on the claim that values that are not paired are alike (Welch)."""
    return _alike(_unpaired(first, second), MEASURES[measure], "draws")


def alike(differences: Sequence[float], measure: str, over: str = "draws") -> str:
    """Return the verdict on the claim that there is no difference."""
    return _alike(_paired(differences), MEASURES[measure], over)


def with_gain(word: str, gains: Sequence[float]) -> str:
    """Return a verdict with a note if one of the runs behind it has not converged."""
    worst = max(gains, default=0.0)
    return f"{word}; not converged (gain up to {worst:.0%})" if worst > CONVERGED else word


def joined(words: dict[str, str]) -> str:
    """Return one verdict for all data sets, or one for each if they differ."""
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{title}: {word}" for title, word in words.items())


def mean_error(values: Sequence[float], form: str = ".2f") -> str:
    """Return mean ± standard error, or only the value if there is one; a dash if there are none."""
    if not len(values):
        return "–"
    error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):{form}}" if len(values) > 1 else ""
    return f"{np.mean(values):{form}}{error}".replace("-", "−")


def table(found: Sequence[Verdict]) -> list[str]:
    """Return the summary table of all claims."""
    return common.table(["where", "claim", "verdict", "evidence"], [list(row) for row in found])


def _paired(differences: Sequence[float]) -> Estimate:
    d = np.asarray(differences, dtype=float)
    return Estimate(float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d))), len(d) - 1, len(d))


def _unpaired(first: Sequence[float], second: Sequence[float]) -> Estimate:
    parts = np.array([np.var(values, ddof=1) / len(values) for values in (first, second)])
    sizes = np.array([len(first), len(second)])
    freedom = parts.sum() ** 2 / (parts**2 / (sizes - 1)).sum() if parts.any() else float(sizes.sum() - 2)
    mean = float(np.mean(first) - np.mean(second))
    return Estimate(mean, float(np.sqrt(parts.sum())), float(freedom), int(sizes.min()))


def _alike(found: Estimate, measure: Measure, over: str) -> str:
    if found.within(measure.margin):
        return f"yes, no difference beyond {_size(measure)}"
    if found.significant:
        return f"no, {'lower' if found.mean < 0 else 'higher'} by {abs(found.mean):{measure.form}}{measure.unit}"
    return _not_decided(found, measure, over)


def _decide(found: Estimate, measure: Measure, over: str = "draws") -> str:
    size = _size(measure)
    if found.significant:
        word = "yes" if found.mean < 0 else "no"
        return f"{word}, by less than {size}" if found.within(measure.margin) else word
    return f"no difference beyond {size}" if found.within(measure.margin) else _not_decided(found, measure, over)


def _not_decided(found: Estimate, measure: Measure, over: str = "draws") -> str:
    low, high = (_signed(end, measure.form) for end in found.interval)
    interval = f"difference {_signed(found.mean, measure.form)}, 95 % interval {low} to {high}"
    for draws in range(found.draws + 1, MOST_DRAWS + 1):
        more = found.with_draws(draws)
        if more.significant or more.within(measure.margin):
            return f"not decided ({interval}; about {draws} {over} needed)"
    return f"not decided ({interval}; more than {MOST_DRAWS:,} {over} needed)"


def _size(measure: Measure) -> str:
    return f"{measure.margin:g}{measure.unit}".replace("1 points", "1 point")


def _one_draw(difference: float, measure: Measure) -> str:
    return f"not decided (difference {_signed(difference, measure.form)}, one draw)"


def _signed(value: float, form: str) -> str:
    return f"{value:+{form}}".replace("-", "−")

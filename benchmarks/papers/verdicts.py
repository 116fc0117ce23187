"""Verdicts on the claims of the papers, and the rule by which a difference of two methods is decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import common
import numpy as np
from scipy import stats

LEVEL = 0.95  # one-sided, of Student's t over the draws
RULE = (
    "“yes” and “no” need a difference that is significant at the one-sided 95 % level of Student's t over the draws"
    " (paired by draw), and otherwise the verdict is “not decided”, with mean and standard error of the difference. The"
    " levels are not corrected for the number of rows: of twenty such rows without a true difference one would be"
    " decided. Rows without draws to compare (Table 3, Fig. 2, 3, 5, 7 and 10) say in the evidence what they rest on."
)


class Verdict(NamedTuple):
    """One claim of a paper, what was found, and the evidence for it."""

    where: str
    claim: str
    verdict: str
    evidence: str


def lower(differences: Sequence[float], form: str = "+.2f") -> str:
    """Return the verdict on the claim that the differences are negative."""
    d = np.asarray(differences, dtype=float)
    if len(d) < 2:
        return f"not decided (difference {_signed(d.mean(), form)}, one draw)"
    error = d.std(ddof=1) / np.sqrt(len(d))
    if abs(d.mean()) > stats.t.ppf(LEVEL, len(d) - 1) * error:
        return "yes" if d.mean() < 0 else "no"
    return f"not decided (difference {_signed(d.mean(), form)}, standard error {error:{form.lstrip('+')}})"


def mean_error(values: Sequence[float], form: str = ".2f") -> str:
    """Return mean ± standard error, or only the value if there is one; a dash if there are none."""
    if not len(values):
        return "–"
    error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):{form}}" if len(values) > 1 else ""
    return f"{np.mean(values):{form}}{error}"


def table(found: Sequence[Verdict]) -> list[str]:
    """Return the summary table of all claims."""
    return common.table(["where", "claim", "verdict", "evidence"], [list(row) for row in found])


def _signed(value: float, form: str) -> str:
    return f"{value:{form}}".replace("-", "−")

"""A short run of the fuzzer: past failures and 500 cases, none of them bad. `python -m tests.fuzz` runs longer ones."""

import json

import pytest

from .cases import draw_case
from .corpus import read_corpus
from .pool import run_cases

CASES = 500


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_every_case_is_finite_or_a_clear_error(seed):
    cases = [draw_case(seed, number) for number in range(CASES // 2)]
    _require_no_failures([*list(read_corpus())[seed::2], *cases])


def _require_no_failures(cases):
    bad = [(v, case) for case, v in run_cases(cases, workers=1) if v["verdict"] == "bad"]
    report = "\n".join(f"{verdict['cause']}\n    {json.dumps(case)}" for verdict, case in bad)
    assert not bad, f"{len(bad)} of {len(cases)} cases are bad:\n{report}"

"""The fuzzer itself: each kind of fault is caught, the pool survives it, and cases are reproducible."""

import json

import numpy as np
import pytest

from .cases import KINDS, draw_case
from .parameters import draw_value
from .pool import run_cases
from .verdicts import judge_error

SOUND = {"kind": "fit", "method": "PCA", "parameters": {}, "X": {
    "table": {"rows": 20, "columns": 3, "seed": 0, "values": "normal"}, "container": {"kind": "array"}}}  # fmt: skip


def causes(*kinds, **limits):
    """Return the cause of each case of these kinds; a sound case follows each to show that the pool works on."""
    cases = [case for kind in kinds for case in ({"kind": kind}, SOUND)]
    found = {}
    for case, verdict in run_cases(cases, workers=1, **limits):
        if case is SOUND:
            assert verdict["verdict"] == "finite"
        else:
            assert verdict["verdict"] == "bad"
            found[case["kind"]] = verdict["cause"]
    return found


def test_crashes_wrong_results_and_internal_errors_are_bad():
    found = causes("crash", "die", "not finite", "wrong shape", "internal", "large")
    assert "process ended with -11" in found["crash"] and "process ended with -9" in found["die"]
    assert found["not finite"] == "Y is not finite" and "shape (3, 2), expected (3, 3)" in found["wrong shape"]
    assert "LinAlgError" in found["internal"] and "MemoryError" in found["large"]


def test_a_case_that_does_not_end_is_bad():
    assert "hang" in causes("hang", time_limit=3.0)["hang"]


def test_cases_are_reproducible_and_survive_json():
    for number in range(300):
        case = draw_case(3, number)
        text = json.dumps(case)
        assert text == json.dumps(draw_case(3, number)) == json.dumps(json.loads(text))
    kinds = {draw_case(0, number)["kind"] for number in range(300)}
    assert kinds == {*KINDS}


def test_negative_sample_rates_are_drawn_below_and_above_the_bound():
    rng = np.random.default_rng(0)
    drawn = [draw_value(rng, "negative_sample_rate") for _ in range(500)]
    numbers = [value for value in drawn if isinstance(value, int | float)]
    assert any(value > 65_536 for value in numbers) and any(value > 2**32 for value in numbers)
    assert not any(1000 < value <= 65_536 for value in numbers)  # correct, but slow


@pytest.mark.parametrize(
    ("call", "clear"),
    [
        (lambda: _fit(n_components=0), True),
        (lambda: _fit(metric="unknown"), True),
        (lambda: _fit(random_state="a"), True),  # scikit-learn's own check
        (lambda: np.linalg.inv(np.zeros((2, 2))), False),
        (lambda: {}["missing"], False),
    ],
)
def test_only_errors_raised_on_purpose_are_clear(call, clear):
    with pytest.raises(Exception) as caught:
        call()
    assert (judge_error(caught.value)["verdict"] == "clear error") is clear


def _fit(**parameters):
    import equipoise as eq

    return eq.TSNE(**parameters).fit(np.random.default_rng(0).normal(size=(20, 3)))

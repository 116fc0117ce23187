"""Collectives of groups: ranks as threads, a single process, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from support import rank_functions
from support.thread_ranks import run_threads

import equipoise as eq
from equipoise.distributed import RankError, SingleProcess, blocked_sum, current_group
from equipoise.distributed.rank_error import describe_error, name_ranks

MESSAGES = {
    "dtype": "all_gather: the dtype differs: <f8 on ranks 0, 2, <f4 on rank 1",
    "trailing shape": "all_gather: the shape after axis 0 differs: (n, 2) on ranks 0, 2, (n, 3) on rank 1",
    "shape": "all_reduce sum: the shape differs: (3,) on ranks 0, 2, (2,) on rank 1",
    "dtype of all_to_all": "all_to_all: the dtype differs: <i8 on ranks 0, 2, <i4 on rank 1",
    "collective": "the ranks called different collectives: all_gather on ranks 0, 2, barrier on rank 1",
    "operation": "the ranks called different collectives: all_reduce min on ranks 0, 2, all_reduce max on rank 1",
    "source": "broadcast: the source differs: 0 on ranks 0, 2, 1 on rank 1",
    "value": "perplexity differs between ranks: 30 on ranks 0, 2, 31 on rank 1 (hosts host0 and host1)",
}


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_collectives_agree_with_numpy(size):
    results = run_threads(rank_functions.collectives, size)
    assert results == [rank_functions.collectives(SingleProcess())] * size


def test_mistakes_name_the_ranks():
    assert run_threads(rank_functions.mistakes, 3) == [MESSAGES] * 3


def test_error_in_a_stage_ends_the_other_ranks():
    def work(group):
        with group.stage("neighbours"):
            if group.rank == 1:
                raise MemoryError("12 GB\nare needed")
            group.barrier()

    results = run_threads(work, 3)
    assert isinstance(results[1], MemoryError)
    for error in (results[0], results[2]):
        assert str(error) == 'rank 1 (host host1) failed in "neighbours": MemoryError: 12 GB are needed'
        assert (error.rank, error.host, error.stage) == (1, "host1", "neighbours")


def test_rank_error_survives_pickling():
    error = pickle.loads(pickle.dumps(RankError(2, "node7", "neighbours", "MemoryError")))
    assert str(error) == 'rank 2 (host node7) failed in "neighbours": MemoryError'
    assert error.cause == "MemoryError" and describe_error(ValueError()) == "ValueError"
    assert name_ranks(list(range(11))) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 3 more"


def test_arguments_and_results_share_no_memory():
    group, array = SingleProcess(), np.arange(4.0)
    for result in (group.all_gather(array)[0], group.all_to_all([array])[0], group.broadcast(array)):
        assert not np.shares_memory(result, array)
    assert not np.shares_memory(group.all_reduce(array, "max"), array)


def test_a_stage_remembers_the_error_of_this_rank():
    group = SingleProcess()
    with pytest.raises(KeyError), group, group.stage("outer"), group.stage("inner"):
        raise KeyError("x")
    assert group.failure.stage == "inner" and group.current_stage == "start"


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (TypeError, "all_reduce does not sum float32: .* use blocked_sum", lambda g: g.all_reduce(np.zeros(2, "f4"))),
        (TypeError, 'op="sum" is not defined for bool', lambda g: g.all_reduce(np.zeros(2, bool))),
        (TypeError, 'op="max" is not defined for complex128', lambda g: g.all_reduce(np.zeros(2, complex), "max")),
        (ValueError, "unknown op 'mean'; choose from sum, max, min", lambda g: g.all_reduce(np.zeros(2), "mean")),
        (TypeError, "dtype object cannot be sent", lambda g: g.all_gather(np.array([None]))),
        (ValueError, "at most 8 axes, got 9", lambda g: g.all_gather(np.zeros((1,) * 9))),
        (ValueError, "needs 1 arrays, one for each rank, got 2", lambda g: g.all_to_all([np.zeros(1)] * 2)),
        (ValueError, r"with at least one axis, got float64 \(\)", lambda g: g.all_to_all([np.zeros(())])),
        (ValueError, "source=1 is no rank; the ranks are 0 to 0", lambda g: g.broadcast(np.zeros(1), 1)),
        (ValueError, "rank 0 is the source and passed None", lambda g: g.broadcast(None)),
        (TypeError, "plain Python values, .* set is not JSON", lambda g: g.gather_values({1})),
        (
            ValueError,
            r"float64 array of shape \(own_blocks, ...\), got float32",
            lambda g: blocked_sum(g, np.ones(1, "f4")),
        ),
        (ValueError, r"the ranks have \[2\] blocks, but counts is \[3\]", lambda g: blocked_sum(g, np.ones(2), [3])),
        (ValueError, "timeout=0 must be a positive number", lambda g: SingleProcess(timeout=0)),
        (TypeError, "group must be an equipoise.distributed.Group or None, got int", lambda g: current_group(3)),
    ],
)
def test_wrong_arguments_are_refused(error, message, call):
    with pytest.raises(error, match=message):
        call(SingleProcess())


def test_blocked_sum_adds_blocks_one_after_the_other():
    blocks = np.array([1e16, 1.0, 1.0, -1e16, 1.0] * 7)
    total = 0.0
    for block in blocks:
        total += block

    def work(group):
        return float(blocked_sum(group, np.array_split(blocks, group.size)[group.rank], counts=None))

    for size in (1, 2, 3, 4):
        assert run_threads(work, size) == [total] * size
    assert blocked_sum(SingleProcess(), np.zeros((0, 2, 2))).shape == (2, 2)


def test_distributed_is_a_public_module():
    assert eq.distributed.current_group is current_group

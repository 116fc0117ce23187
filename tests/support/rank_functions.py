"""Functions that ranks execute in tests; called as `function(group, *arguments)`."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

from equipoise.distributed import RankError, blocked_sum, current_group

DTYPES = ("?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", ">f8", "c16", "U3", "M8[s]")
MISTAKES = {
    "dtype": lambda group: group.all_gather(np.zeros(2, "f4" if group.rank == 1 else "f8")),
    "trailing shape": lambda group: group.all_gather(np.zeros((group.rank, 3 if group.rank == 1 else 2))),
    "shape": lambda group: group.all_reduce(np.zeros(2 if group.rank == 1 else 3, int)),
    "dtype of all_to_all": lambda group: group.all_to_all([np.zeros(1, f"i{4 * group.rank or 8}")] * group.size),
    "collective": lambda group: group.barrier() if group.rank == 1 else group.all_gather(np.zeros(1)),
    "operation": lambda group: group.all_reduce(np.zeros(1, int), "max" if group.rank == 1 else "min"),
    "source": lambda group: group.broadcast(np.zeros(1), group.rank % 2),
    "value": lambda group: group.require_equal("perplexity", 30 + (group.rank == 1)),
}


def rows(rank, dtype, columns=3):
    """Return the rows of a rank: as many as its number, plus one."""
    values = np.random.default_rng(rank).integers(0, 100, (rank + 1, columns))
    return values.astype(dtype)


def collectives(group):
    """Compare every collective with NumPy; return what must be the same on all ranks."""
    for dtype in DTYPES:
        check_moves(group, dtype)
        check_reductions(group, dtype)
    check_values(group)
    check_odd_shapes(group)
    blocks = np.random.default_rng(0).standard_normal((12, 2)) * 10.0 ** np.arange(-6, 6)[:, None]
    own = np.array_split(blocks, group.size)[group.rank]
    return [blocked_sum(group, own).tobytes().hex(), blocked_sum(group, own[:, 0]).tobytes().hex()]


def check_moves(group, dtype):
    expected = [rows(rank, dtype) for rank in range(group.size)]
    own = expected[group.rank]
    assert_equal(group.all_gather(own), expected)
    assert_equal(group.all_gather(own.T.copy().T), expected)  # not contiguous
    assert_equal([group.broadcast(own if group.rank == 0 else None)], expected[:1])
    assert_equal([group.broadcast(own, group.size - 1)], expected[-1:])
    sent = [own[: (group.rank + rank) % 3] for rank in range(group.size)]
    received = [expected[rank][: (group.rank + rank) % 3] for rank in range(group.size)]
    assert_equal(group.all_to_all(sent), received)
    if np.dtype(dtype).kind in "if" and np.dtype(dtype).isnative:
        for arrays, parts in ((sent, received), ([own[:0]] * group.size, [own[:0]] * group.size)):
            finish = group.start_all_to_all(arrays, [len(part) for part in parts])
            group.barrier()  # other collectives may be called meanwhile
            assert_equal([finish()], [np.concatenate(parts)])


def check_reductions(group, dtype):
    dtype = np.dtype(dtype)
    everyone = np.array([rows(rank, dtype)[-1] for rank in range(group.size)])
    if dtype.kind in "if":
        everyone = (everyone - np.array(50, dtype)).astype(dtype)
    own = everyone[group.rank]
    if dtype.kind in "biuf":
        assert_equal([group.all_reduce(own, "max")], [everyone.max(axis=0).astype(dtype)])
        assert_equal([group.all_reduce(own, "min")], [everyone.min(axis=0).astype(dtype)])
    if dtype.kind in "iu":
        assert_equal([group.all_reduce(own)], [everyone.sum(axis=0).astype(dtype)])


def check_values(group):
    assert group.gather_values({"rank": group.rank}) == [{"rank": rank} for rank in range(group.size)]
    assert group.broadcast_value(["ä", None, 0.1, group.rank], source=group.size - 1) == [
        "ä",
        None,
        0.1,
        group.size - 1,
    ]
    group.require_equal("fingerprint", "ab12")
    group.barrier()
    big = 2**62 - 1 - group.rank  # a float64 has no such numbers
    assert group.all_reduce(np.array([1, big]), "max")[1] == 2**62 - 1
    assert (
        group.all_reduce(np.array([2**53 + 1 if group.rank == 0 else 2**54]))[0] == 2**53 + 1 + (group.size - 1) * 2**54
    )
    own = np.array([-0.0 if group.rank else 0.0, np.nan if group.rank == 0 else 1.0, -np.inf, group.rank])
    for op, last in (("max", group.size - 1), ("min", 0)):
        result = group.all_reduce(own, op)
        np.testing.assert_array_equal(result, [0, np.nan, -np.inf, last])
        assert np.signbit(result[0]) == (op == "min" and group.size > 1)


def check_odd_shapes(group):
    assert_equal(group.all_gather(np.array(group.rank)), [np.array(rank) for rank in range(group.size)])
    empty = np.zeros((0, 2))
    assert_equal(group.all_gather(empty if group.rank == 0 else np.ones((2, 2)))[:1], [empty])
    assert_equal(group.all_to_all([empty] * group.size), [empty] * group.size)
    assert_equal([group.broadcast(empty), group.all_reduce(np.zeros((2, 0), int))], [empty, np.zeros((2, 0), int)])


def assert_equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, (one, other)
        np.testing.assert_array_equal(one, other)


def chunked(group):
    """Send arrays in many chunks."""
    from equipoise.distributed import torch_group

    torch_group.CHUNK_BYTES = 64
    return collectives(group)


def mistakes(group):
    """Return the message that each mistake raises; the group can be used afterwards."""
    messages = {}
    for name, mistake in MISTAKES.items():
        try:
            mistake(group)
        except ValueError as error:
            messages[name] = str(error)
        group.barrier()
    return messages


def all_checks(group):
    """Run all checks in the same processes."""
    return [
        collectives(group),
        chunked(group),
        mistakes(group) if group.size > 1 else {},
        group is current_group(group),
    ]


def fail(group, how, victim, folder):
    """Work in a stage until `victim` fails; the other ranks write their error to a file."""
    with group.stage("set-up"):
        group.barrier()
    try:
        with group.stage("neighbours"):
            group.barrier()
            if how == "hang":
                group.timeout = 5.0
            if group.rank == victim:
                misbehave(how)
            while True:
                group.all_reduce(np.zeros(1000, np.int64))
    except RankError as error:
        Path(folder, f"{group.rank}.txt").write_text(str(error))
        raise


def misbehave(how):
    if how == "raise":
        raise MemoryError("12 GB are needed")
    if how == "exit":
        sys.exit("gave up")
    if how == "hang":
        time.sleep(600)
    if how == "kill":  # at a random moment during collectives
        threading.Timer(random.uniform(0.6, 1.2), os.kill, (os.getpid(), signal.SIGKILL)).start()


def rank_and_size(group):
    """Return rank and size."""
    return [group.rank, group.size]


def fit_on_tensors(group, path, as_tensors):
    """Return the bytes of a map fitted by PyTorch on the CPU; messages are tensors, as between GPUs, or arrays."""
    from equipoise import TSNE
    from equipoise.distributed import fit
    from equipoise.distributed.tensor_exchange import TensorExchange

    make = TensorExchange.__init__

    def exchange_tensors(self, group):
        make(self, group)
        self._gpu_group, self._alone = group, False  # gloo takes tensors in host memory, as NCCL takes those on a GPU

    if as_tensors:
        TensorExchange.__init__ = exchange_tensors
    method = TSNE(n_iter=5, perplexity=10, random_state=0, engine="torch", device="cpu", verbose=0)
    Y = fit(method, path, group=group).gather()
    return None if Y is None else Y.tobytes().hex()

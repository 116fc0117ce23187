"""Ranks on the workers of a local Dask cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import rank_functions

import equipoise as eq
from equipoise.distributed import RankError, SingleProcess

pytest.importorskip("torch", reason="PyTorch is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
pytestmark = pytest.mark.ranks


@pytest.fixture(scope="module")
def client():
    tests = str(Path(rank_functions.__file__).parents[1])
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=True, **options) as cluster, distributed.Client(cluster) as client:
        client.run(sys.path.append, tests)
        yield client


def test_one_rank_runs_on_each_worker(client):
    results = eq.distributed.run(rank_functions.collectives, client)
    assert results == [rank_functions.collectives(SingleProcess())] * 2


def test_failure_of_a_rank_is_raised_and_the_workers_can_be_used_again(client, tmp_path):
    with pytest.raises(RankError, match=r'rank 1 .* failed in "neighbours": MemoryError: 12 GB are needed'):
        eq.distributed.run(rank_functions.fail, client, "raise", 1, str(tmp_path))
    assert eq.distributed.run(rank_functions.rank_and_size, client) == [[0, 2], [1, 2]]


def test_workers_in_one_process_are_refused():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, **options) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ValueError, match="workers share a process; start the cluster with processes=True"),
    ):
        eq.distributed.run(rank_functions.rank_and_size, client)


def test_cluster_without_workers_is_refused():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ValueError, match="the Dask cluster has no workers"),
    ):
        eq.distributed.run(rank_functions.rank_and_size, client)


def test_other_clients_are_refused():
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client, got str"):
        eq.distributed.run(rank_functions.rank_and_size, "tcp://scheduler:8786")

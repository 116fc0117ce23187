"""Ranks on the workers of a Dask cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlparse

from .group import DEFAULT_TIMEOUT, checked_timeout
from .launch import free_port
from .rank_error import RankError
from .rank_function import execute


def run(function: Callable[..., Any], client: Any, *args: Any, timeout: float = DEFAULT_TIMEOUT) -> list[Any]:
    """Run a function as one rank on each worker of a Dask cluster, and return the results in the order of ranks.

    Parameters
    ----------
    function : callable
        Called on each worker as `function(group, *args)`.
    client : dask.distributed.Client
        Every worker must be a process of its own, and idle: ranks wait for one another.
    *args : object
        Further arguments, the same on all ranks; futures are replaced by their results.
    timeout : float, default=300
        The time limit of a collective, and of the start, in seconds.

    Raises
    ------
    RankError
        If a rank fails; the others are ended.
    """
    from distributed import Client, as_completed

    if not isinstance(client, Client):
        raise TypeError(f"client must be a dask.distributed.Client, got {type(client).__name__}")
    timeout = checked_timeout(timeout)
    processes = client.run(_process)
    workers = sorted(processes)
    if not workers:
        raise ValueError("the Dask cluster has no workers; start some, or wait for them with client.wait_for_workers")
    if len(set(processes.values())) < len(workers):
        raise ValueError("workers share a process; start the cluster with processes=True, one rank for each process")
    address = urlparse(workers[0]).hostname
    port = client.submit(free_port, address, workers=workers[:1], allow_other_workers=False, pure=False).result()
    futures = [
        client.submit(
            _run_rank,
            function,
            {"RANK": str(rank), "WORLD_SIZE": str(len(workers)), "MASTER_ADDR": address, "MASTER_PORT": str(port)},
            timeout,
            *args,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        for rank, worker in enumerate(workers)
    ]
    try:
        for _, (_, failure) in as_completed(futures, with_results=True):
            if failure is not None:
                raise failure
        return [future.result()[0] for future in futures]
    finally:
        client.cancel(futures)


def _process() -> tuple[str, int]:
    return socket.gethostname(), os.getpid()


def _run_rank(
    function: Callable[..., Any], variables: dict[str, str], timeout: float, *args: Any
) -> tuple[Any, RankError | None]:
    """Run one rank in a process that runs other tasks later; return its value or its error."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        return execute(function, args, timeout), None
    except RankError as error:
        return None, error
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

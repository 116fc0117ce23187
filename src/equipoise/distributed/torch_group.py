"""A group of ranks over torch.distributed: gloo on CPUs, NCCL on GPUs."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import numpy as np

from .._optional import import_optional
from .._types import Array
from .._version import __version__
from .environment import read_environment
from .group import DEFAULT_TIMEOUT, Group, checked_timeout, refuse_unequal
from .message_header import Header
from .rank_error import RankError, describe_error, name_ranks
from .rank_gpu import choose_backend, count_gpus, identify_gpu, use_own_gpu, warn_of_shared_gpus
from .rank_monitor import RankMonitor

BACKENDS = ("auto", "gloo", "nccl")
SLICE_SECONDS = 0.2  # how often a waiting rank looks whether another has failed
SPIN_SECONDS = 2e-3  # how long a rank looks without pause whether a collective of GPUs has ended; chosen
CHUNK_BYTES = 1 << 28  # the largest message, and the size of the buffers of all_to_all
_NEVER_SENT = 7001  # tag of a message that no rank sends


class TorchGroup(Group):
    """Ranks that communicate through torch.distributed.

    The process group is the default one of torch.distributed if it has been initialised. Otherwise it is initialised
    from the environment variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

    Parameters
    ----------
    timeout : float, default=300
        The time limit of a collective, and of the start, in seconds.
    backend : {"auto", "gloo", "nccl"}, default="gloo"
        How ranks communicate if the process group has not been initialised. "nccl" needs a GPU for each rank, the GPU
        LOCAL_RANK. "auto" is "nccl" if every rank has a GPU of its own, and "gloo" otherwise.

    Attributes
    ----------
    device : torch.device
        Where messages are: the GPU of this rank with NCCL, otherwise the CPU.
    """

    def __init__(self, timeout: float = DEFAULT_TIMEOUT, backend: str = "gloo") -> None:
        super().__init__()
        self.timeout = checked_timeout(timeout)
        if backend not in BACKENDS:
            raise ValueError(f"unknown backend {backend!r}; choose from {', '.join(BACKENDS)}")
        self._torch = import_optional("torch", "gpu", "communication between ranks")
        self._dist = dist = import_optional("torch.distributed", "gpu", "communication between ranks")
        if not dist.is_available():
            raise ImportError("this build of PyTorch has no torch.distributed; install another one")
        self._owner = not dist.is_initialized()
        if self._owner:
            store = self._connect()
        else:
            self.rank, self.size = dist.get_rank(), dist.get_world_size()
            backend = dist.get_backend()
            store = dist.distributed_c10d._get_default_store()
        number = store.add(f"equipoise/groups of rank {self.rank}", 1)  # several groups may share a store
        store = dist.PrefixStore(f"equipoise/{number}", store)
        backend = self._introduce(store, backend)
        if self._owner:
            dist.init_process_group(
                backend,
                store=dist.PrefixStore("processes", store),
                rank=self.rank,
                world_size=self.size,
                timeout=timedelta(seconds=self.timeout + 60),  # the limit of this class comes first
            )
        self.device = self._torch.device("cpu")
        if backend == "nccl":
            use_own_gpu(self.rank)
            self.device = self._torch.device("cuda", self._torch.cuda.current_device())
        self._name, self._deadline = "", 0.0
        self.closed = self._aborted = False
        self._monitor = RankMonitor(store, self.rank, self.hosts)

    def close(self) -> None:
        """Leave the group; rank 0 waits until the others have left. Destroys the process group if it is its own."""
        if self.closed:
            return
        self.closed = True
        self._monitor.close(self.timeout)
        if self._monitor.failure is not None or self.failure is not None:
            self._abort()
        if self._owner and self._dist.is_initialized():
            self._dist.destroy_process_group()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name what the ranks are doing, for error messages; an error that leaves the stage ends the other ranks."""
        self._monitor.enter_stage(name)
        try:
            with super().stage(name):
                yield
        finally:
            self._monitor.enter_stage(self.current_stage)

    def _connect(self) -> Any:
        """Return the store at MASTER_ADDR and MASTER_PORT, hosted by rank 0 or by torchrun."""
        self.rank, self.size = read_environment(os.environ)
        host, port = os.environ.get("MASTER_ADDR", ""), int(os.environ.get("MASTER_PORT", 0))
        torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        try:
            store = self._dist.TCPStore(
                host,
                port,
                is_master=self.rank == 0 and not torchrun,
                timeout=timedelta(seconds=self.timeout),
                wait_for_workers=False,
                multi_tenant=True,
            )
        except RuntimeError as error:
            first_line = str(error).partition("\n")[0]
            raise ConnectionError(
                f"no connection to rank 0 at {host}:{port} within {self.timeout:g} s ({first_line});"
                " check MASTER_ADDR and MASTER_PORT, and that rank 0 runs"
            ) from error
        return self._dist.PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)

    def run(self, name: str, *tensors: Any, **options: Any) -> None:
        """Run a collective of torch.distributed on tensors on `device`, which it fills or changes.

        The ranks must agree beforehand on shapes and dtypes: they are not compared.
        """
        with self._collective(name):
            self._wait([self._start(getattr(self._dist, name), *tensors, **options)])

    def start_all_to_all(self, arrays: Sequence[Array], received: Sequence[int]) -> Callable[[], Array]:
        if self.device.type != "cpu":
            return super().start_all_to_all(arrays, received)
        given = self._torch.from_numpy(np.concatenate(arrays))
        rows = np.empty((sum(received), *given.shape[1:]), arrays[0].dtype)
        taken, sent = self._torch.from_numpy(rows), [len(array) for array in arrays]
        with self._collective("all_to_all"):
            work = self._start(self._dist.all_to_all_single, taken, given, list(received), sent)

        def finish() -> Array:
            with self._collective("all_to_all"):
                self._wait([work])
            return rows

        return finish

    def _introduce(self, store: Any, backend: str) -> str:
        """Exchange the names of hosts, and refuse ranks that do not come or have another version or byte order.

        Return the backend, which for "auto" depends on the GPUs of all ranks.
        """
        host = socket.gethostname()
        gpu, count = None, 0
        if backend != "gloo" and self._owner:
            gpu, count = identify_gpu(self.rank, host), count_gpus()
        own: dict[str, Any] = {"host": host, "version": __version__, "byteorder": sys.byteorder}
        own |= {"backend": backend, "gpu": gpu, "gpus": count}
        store.set(f"hello/{self.rank}", json.dumps(own))
        keys = [f"hello/{rank}" for rank in range(self.size)]
        try:
            store.wait(keys, timedelta(seconds=self.timeout))
        except self._dist.DistNetworkError as error:
            raise ConnectionError("rank 0 ended before all ranks were connected; see its own message") from error
        except RuntimeError as error:
            missing = [rank for rank, key in enumerate(keys) if not store.check([key])]
            raise ConnectionError(
                f"{name_ranks(missing)} did not connect within {self.timeout:g} s; {self.size} ranks were expected"
            ) from error
        hello = [json.loads(store.get(key)) for key in keys]
        store.set(f"met/{self.rank}", "")
        if self.rank == 0:  # its end would take the store from ranks that still read
            with suppress(RuntimeError):
                store.wait([f"met/{rank}" for rank in range(self.size)], timedelta(seconds=self.timeout))
        self.hosts = tuple(one["host"] for one in hello)
        refuse_unequal("equipoise version", [one["version"] for one in hello], self.hosts)
        refuse_unequal("byte order", [one["byteorder"] for one in hello], self.hosts)
        refuse_unequal("backend", [one["backend"] for one in hello], self.hosts)
        if not self._owner:
            return backend
        gpus, has_nccl = [one["gpu"] for one in hello], self._dist.is_nccl_available()
        if self.rank == 0 and backend == "auto" and has_nccl:
            warn_of_shared_gpus(gpus, [one["gpus"] for one in hello], self.hosts)
        return choose_backend(backend, gpus, self.hosts, has_nccl)

    def _publish(self, failure: RankError) -> None:
        self._monitor.report(failure)

    @contextmanager
    def _collective(self, name: str) -> Iterator[None]:
        if self.closed:
            raise RuntimeError(f"{name} was called on a group that has been closed; use a new one")
        self._raise_failure()
        self._name, self._deadline = name, time.monotonic() + self.timeout
        self._monitor.enter_collective()
        yield

    def _headers(self, header: Header) -> list[Header]:
        own = self._tensor(header.encode(self.size))
        rows = [self._torch.empty_like(own) for _ in range(self.size)]
        self._wait([self._start(self._dist.all_gather, rows, own)])
        return [Header.decode(row.cpu().numpy()) for row in rows]

    def _reduce(self, array: Array, op: str) -> Array:
        tensor = self._tensor(array.reshape(-1))
        operation = getattr(self._dist.ReduceOp, op.upper())
        chunks = tensor.split(CHUNK_BYTES // array.itemsize) if len(tensor) else ()
        self._wait([self._start(self._dist.all_reduce, chunk, op=operation) for chunk in chunks])
        return np.asarray(tensor.cpu().numpy()).reshape(array.shape)

    def _gather(self, parts: list[Array]) -> None:
        self._broadcast_all(list(enumerate(parts)))

    def _send_from(self, source: int, data: Array) -> None:
        self._broadcast_all([(source, data)])

    def _broadcast_all(self, parts: list[tuple[int, Array]]) -> None:
        """Broadcast each array of bytes from its rank, in chunks."""
        chunks = [
            (rank, part[begin : begin + CHUNK_BYTES])
            for rank, part in parts
            for begin in range(0, len(part), CHUNK_BYTES)
        ]
        tensors = [self._tensor(chunk) for _, chunk in chunks]
        works = [self._start(self._dist.broadcast, t, src=rank) for (rank, _), t in zip(chunks, tensors, strict=True)]
        self._wait(works)
        for (rank, chunk), tensor in zip(chunks, tensors, strict=True):
            if rank != self.rank and self.device.type != "cpu":
                chunk[:] = tensor.cpu().numpy()

    def _swap(self, sent: list[Array], received: list[Array], counts: Array) -> None:
        step = max(CHUNK_BYTES // self.size, 1)
        for begin in range(0, int(counts.max(initial=0)), step):
            here = np.clip(counts - begin, 0, step)
            to, back = here[self.rank].tolist(), here[:, self.rank].tolist()
            given = np.concatenate([part[begin : begin + n] for part, n in zip(sent, to, strict=True)])
            given = self._tensor(given)
            taken = self._torch.empty(sum(back), dtype=self._torch.uint8, device=self.device)
            self._wait([self._start(self._dist.all_to_all_single, taken, given, back, to)])
            pieces = np.split(taken.cpu().numpy(), np.cumsum(back)[:-1])
            for part, n, piece in zip(received, back, pieces, strict=True):
                part[begin : begin + n] = piece

    def _tensor(self, array: Array) -> Any:
        """Return a tensor with the array's memory on the CPU, or a copy on the GPU."""
        return self._torch.from_numpy(array).to(self.device)

    def _start(self, function: Any, *arguments: Any, **options: Any) -> Any:
        """Start a collective of torch.distributed, and return its handle."""
        try:
            return function(*arguments, **options, async_op=True)
        except RuntimeError as error:
            raise self._find_failure(describe_error(error), None) from error

    def _wait(self, works: list[Any]) -> None:
        """Wait for collectives until they end, another rank fails, or the time limit has passed."""
        for work in works:
            while not self._ended(work):
                self._raise_failure()
                if time.monotonic() > self._deadline:
                    raise self._find_failure("time limit", self.timeout)

    def _ended(self, work: Any) -> bool:
        """Wait for a short time, and return whether a collective has ended; raise if it failed."""
        try:
            if self.device.type == "cpu":
                work.wait(timedelta(seconds=SLICE_SECONDS))
                return True
            start = time.monotonic()
            while not work.is_completed() and (waited := time.monotonic() - start) < SLICE_SECONDS:
                time.sleep(1e-4 if waited > SPIN_SECONDS else 0)
            if not work.is_completed():
                return False
            work.wait()
            self._torch.cuda.current_stream().synchronize()
            return True
        except RuntimeError as error:
            if self.device.type == "cpu" and "timed out" in str(error).lower() and not self._failed(work):
                return False  # the short time has passed, even if the collective has ended since
            raise self._find_failure(describe_error(error), None) from error

    def _failed(self, work: Any) -> bool:
        """Return whether a collective has ended with an error."""
        try:
            return bool(work.is_completed() and not work.wait())
        except RuntimeError:
            return True

    def _raise_failure(self) -> None:
        """Raise the failure that a rank has reported."""
        if self._monitor.failure is not None:
            self._monitor.linger()
            self._abort()
            raise self._monitor.failure

    def _find_failure(self, error: str, limit: float | None) -> RankError:
        failure = self._monitor.find_failure(self._name, error, limit)
        self._abort()
        return failure

    def _abort(self) -> None:
        """End the collectives that wait for a rank that failed, or else the process would wait for them at its end."""
        if self._aborted or not self._dist.is_initialized():
            return
        self._aborted = True
        with suppress(RuntimeError):
            if self.device.type == "cpu":  # gloo closes its connections when the wait for a message times out
                message = self._dist.irecv(self._torch.empty(1), src=(self.rank + 1) % self.size, tag=_NEVER_SENT)
                message.wait(timedelta(milliseconds=1))
            elif hasattr(self._dist.group.WORLD, "abort"):
                self._dist.group.WORLD.abort()

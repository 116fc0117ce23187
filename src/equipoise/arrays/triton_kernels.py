"""Launches Triton kernels, and compiles them on several threads before their first launch.

Triton compiles a kernel at its first launch, and again for other types of arguments and other constants: each of these
is a variant. To compile variants early and in parallel, `prepare` calls the functions that launch kernels with tensors
on the device "meta", which have no memory. Nothing is launched: the calls are recorded, and their variants compiled on
several cores. A launch waits only for its own variant.

Reading variants from Triton's cache on disk is Python code, which threads do not speed up. So when all variants of a
call of `prepare` are in the cache, a marker is stored there too, and later processes leave the reading to launches.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch.overrides import TorchFunctionMode

from .._version import __version__

T = TypeVar("T")
META = torch.device("meta")
MOST = 8  # threads that compile; chosen: a quarter of the work is Python code, which runs on one thread at a time
MARKER = "prepared"
CLOCK = 0.1  # seconds by which the times of files may lag behind the clock; chosen


class Variant(NamedTuple):
    """A variant of a kernel that was compiled, or read from Triton's cache on disk."""

    name: str
    seconds: float
    cached: bool  # whether it was read from the cache


class Call(NamedTuple):
    """A recorded launch."""

    kernel: Kernel
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class Kernel:
    """A kernel in Triton, launched by `kernel[grid](*arguments, **options)`; used as a decorator.

    Parameters
    ----------
    function : triton.JITFunction
        The kernel. Its `do_not_specialize` should list all integers that are not constants, and all pointers that may
        not be multiples of 16: otherwise, multiples of 16 and the number 1 need variants of their own.
    """

    def __init__(self, function: Any):
        self.function = function
        self.name: str = function.fn.__name__
        self._requested: set[Hashable] = set()
        self._pending: dict[Hashable, Future[Variant]] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **options: Any) -> None:
            global _start
            calls = getattr(_recording, "calls", None)
            if calls is not None:
                calls.append(Call(self, arguments, options))
                return
            if (start := _start) is not None:
                _wait(start)
                _start = None
            if self._pending:
                _wait(self._pending.pop(self._variant(arguments, options), None))
            self.function[grid](*arguments, **options)

        return launch

    def compile(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> Future[Variant] | None:
        """Compile the variant for these arguments on another thread, unless this was requested before."""
        variant = self._variant(arguments, options)
        if variant in self._requested:
            return None
        self._requested.add(variant)
        device = torch.cuda.current_device()

        def task() -> Variant:
            torch.cuda.set_device(device)
            _start_triton()
            now, start = time.time(), time.perf_counter()
            compiled = self.function.warmup(*arguments, grid=(1,), **options)
            compiled[1, 1, 1]  # builds the launcher and loads the variant to the device
            written = max(map(os.path.getmtime, compiled.metadata_group.values()))
            return Variant(self.name, time.perf_counter() - start, written < now - CLOCK)

        self._pending[variant] = future = _workers.submit(task)
        return future

    def _variant(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> Hashable:
        """Return what determines the variant: the device, types of arguments, constants and options."""
        kinds = [
            x.dtype if isinstance(x, torch.Tensor) else x if parameter.is_constexpr else type(x)
            for parameter, x in zip(self.function.params, arguments, strict=True)
        ]
        return (torch.cuda.current_device(), *kinds, *sorted(options.items()))


def _wait(future: Future[Any] | None) -> None:
    if future is not None:
        with suppress(Exception):  # the launch tries again, and raises
            future.result()


def start() -> None:
    """Begin to prepare Triton on another thread, once for each process."""
    global _start, _started
    if not _started:
        _started = True
        _start = _workers.submit(_start_triton)


def _start_triton() -> None:
    """Let Triton prepare its driver and hash its own files, 0.3 s on one thread, which others must not do as well."""
    with _starting, suppress(ImportError):
        from triton.runtime import driver

        driver.active.get_current_target()
        from triton.runtime.cache import triton_key  # in this module since Triton 3.4

        triton_key()


class Workers:
    """Threads that compile, at most MOST and one for each core; they end when nothing is left to do.

    Daemon threads could be inside the compiler when the interpreter ends, and a `ThreadPoolExecutor` would complete all
    tasks before the program ends. These threads complete only the tasks that they have begun.
    """

    def __init__(self) -> None:
        self._lock, self._running = threading.Lock(), 0
        self._tasks: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.limit = min(MOST, cores)

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Run a task after those submitted before; the future is cancelled if the program ends first."""
        future: Future[T] = Future()
        with self._lock:
            self._tasks.append((task, future))
            start = self._running < self.limit
            self._running += start
        if start:
            threading.Thread(target=self._run, name="equipoise-compiler").start()
        return future

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._tasks:
                    self._running -= 1
                    return
                task, future = self._tasks.popleft()
            if not threading.main_thread().is_alive():
                future.cancel()
                continue
            try:
                future.set_result(task())
            except BaseException as error:
                future.set_exception(error)


_workers = Workers()
_starting = threading.Lock()
_started = False
_recording = threading.local()  # `calls`: the list to which launches on this thread are recorded
_prepared: set[Hashable] = set()
_start: Future[None] | None = None  # the preparation of Triton, until a launch has waited for it


class OnHost(TorchFunctionMode):
    """Computes with tensors on the CPU instead of the device "meta", and returns the results on "meta".

    PyTorch's own operations on "meta" would import its compiler, which takes seconds.
    """

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        if function.__name__ == "__get__" or function in (torch.empty, torch.zeros, torch.full):
            return function(*arguments, **(options or {}))
        return _moved(function(*_moved(arguments, META, "cpu"), **_moved(options or {}, META, "cpu")), "cpu", META)


def _moved(value: Any, source: Any, target: Any) -> Any:
    """Return a value in which empty tensors on the device `target` stand for those on the device `source`."""
    if isinstance(value, torch.Tensor) and value.device == torch.device(source):
        return torch.empty(value.shape, dtype=value.dtype, device=target)
    if isinstance(value, dict):
        return {name: _moved(part, source, target) for name, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [_moved(part, source, target) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return torch.device(target) if isinstance(value, torch.device) and value == torch.device(source) else value


def recorded(launch: Callable[[], object]) -> list[Call]:
    """Return the launches of kernels by the function `launch`, which uses tensors on the device "meta"."""
    calls: list[Call] = []
    _recording.calls = calls
    try:
        with OnHost():
            launch()
    finally:
        del _recording.calls
    return calls


def prepare(name: str, launch: Callable[[], object]) -> None:
    """Begin to compile the kernels that the function `launch` launches, in their order, on other threads.

    Do nothing if this was done before under this name for the current device, by this process or an earlier one.
    """
    start()
    key = name, torch.cuda.current_device()
    if key in _prepared:
        return
    _prepared.add(key)
    folder = _cache_folder(name)
    if folder is None or folder.get_file(MARKER) is None:
        compile_recorded(name, launch)


def compile_recorded(name: str, launch: Callable[[], object]) -> list[Future[Variant]]:
    """Do what `prepare` does, whatever was done before; return the variants that were not requested before."""
    found = [call.kernel.compile(call.arguments, call.options) for call in recorded(launch)]
    variants = [variant for variant in found if variant is not None]
    folder = _cache_folder(name)

    def store_marker(last: Future[Variant]) -> None:
        if all(variant.done() and not _failed(variant) for variant in variants):
            folder.put("", MARKER, binary=False)

    if folder is not None:
        for variant in variants:
            variant.add_done_callback(store_marker)
    return variants


def _failed(variant: Future[Variant]) -> bool:
    return variant.cancelled() or variant.exception() is not None


def _cache_folder(name: str) -> Any:
    """Return the part of Triton's cache for the kernels of a call of `prepare`; None without Triton.

    Its key is a hash of the sources of all kernels, the versions and the GPU's architecture.
    """
    try:
        from triton.runtime.cache import get_cache_manager
    except ImportError:
        return None
    kind = *torch.cuda.get_device_capability(), torch.__version__, __version__, name
    return get_cache_manager(hashlib.sha256(_sources() + repr(kind).encode()).hexdigest())


@cache
def _sources() -> bytes:
    """Return a hash of the modules that define kernels."""
    files = sorted(Path(__file__).parents[1].rglob("*_triton.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()

"""Compiling kernels ahead of their first launch, with kernels that only record what is done to them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from equipoise.arrays import triton_kernels  # noqa: E402
from equipoise.arrays.triton_kernels import (  # noqa: E402
    META,
    Kernel,
    Workers,
    compile_recorded,
    prepare,
    recorded,
)


class FakeFunction:
    """Stands for a `triton.JITFunction` with the arguments X, n and the constant D."""

    def __init__(self, folder, error=None):
        self.fn = SimpleNamespace(__name__="_kernel")
        self.params = [SimpleNamespace(is_constexpr=constant) for constant in (False, False, True)]
        self.compiled, self.launched, self.open = [], [], threading.Event()
        self.folder, self.error = folder, error

    def warmup(self, X, n, D, *, grid, **options):
        assert self.open.wait(60)
        if self.error is not None:
            raise self.error
        file = self.folder / f"{len(self.compiled)}.json"
        file.touch()
        self.compiled.append((X.dtype, D, options, threading.current_thread() is threading.main_thread()))
        return type("Compiled", (), {"metadata_group": {"kernel.json": file}, "__getitem__": lambda *arguments: None})()

    def __getitem__(self, grid):
        def launch(X, n, D, **options):
            self.launched.append((grid, n, len(self.compiled)))

        return launch


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(triton_kernels, "_prepared", set())
    monkeypatch.setattr(triton_kernels, "_start_triton", lambda: None)
    monkeypatch.setattr(triton_kernels, "_cache_folder", FakeFolder)
    FakeFolder.files.clear()
    return Kernel(FakeFunction(tmp_path))


class FakeFolder:
    """Stands for a folder of Triton's cache."""

    files: ClassVar[set] = set()

    def __init__(self, name):
        self.name = name

    def get_file(self, file):
        return file if (self.name, file) in self.files else None

    def put(self, content, file, binary):
        self.files.add((self.name, file))


def launch(kernel, dtype=torch.float32, n=7, D=2):
    kernel[(3,)](torch.empty(4, dtype=dtype, device=META), n, D, num_warps=1)


def test_recorded_launches_do_not_run(kernel):
    calls = recorded(lambda: (launch(kernel), launch(kernel, n=8)))
    assert [call.arguments[1] for call in calls] == [7, 8] and calls[0].options == {"num_warps": 1}
    assert kernel.function.launched == [] and kernel.function.compiled == []
    launch(kernel)
    assert kernel.function.launched == [((3,), 7, 0)]


def test_each_variant_is_compiled_once_and_before_its_first_launch(kernel):

    def launches():
        launch(kernel)
        launch(kernel, n=16)
        launch(kernel, torch.float64)

    variants = compile_recorded("all", launches)
    assert len(variants) == 2 and compile_recorded("again", launches) == []
    threading.Timer(0.2, kernel.function.open.set).start()
    launch(kernel, n=1)  # waits
    assert [part[:2] for part in kernel.function.launched] == [((3,), 1)]
    assert (torch.float32, 2, {"num_warps": 1}, False) in kernel.function.compiled
    names = [variant.result(60) for variant in variants]
    assert [(name, cached) for name, _, cached in names] == [("_kernel", False)] * 2
    launch(kernel, torch.float64)
    launch(kernel, D=3)  # was not prepared
    assert len(kernel.function.launched) == 3 and len(kernel.function.compiled) == 2


def test_files_older_than_the_task_were_cached(kernel):
    function = kernel.function
    function.open.set()
    warmup = function.warmup

    def read(*arguments, **options):
        compiled = warmup(*arguments, **options)
        os.utime(compiled.metadata_group["kernel.json"], (1, 1))
        return compiled

    function.warmup = read
    assert [variant.result(60).cached for variant in compile_recorded("read", lambda: launch(kernel))] == [True]


def test_launch_is_tried_although_the_preparation_failed(kernel):
    kernel.function.error = RuntimeError("ptxas")
    kernel.function.open.set()
    (variant,) = compile_recorded("failing", lambda: launch(kernel))
    launch(kernel)
    assert len(kernel.function.launched) == 1
    with pytest.raises(RuntimeError, match="ptxas"):
        variant.result(60)
    assert FakeFolder.files == set()


def test_kernels_of_an_earlier_process_are_not_prepared_again(kernel):
    kernel.function.open.set()
    prepare("first", lambda: launch(kernel))
    prepare("first", lambda: launch(kernel, D=3))  # the same name: nothing
    launch(kernel)  # waits
    assert len(kernel.function.compiled) == 1
    deadline = time.monotonic() + 60
    while not FakeFolder.files:  # stored after the variant, on the other thread
        assert time.monotonic() < deadline
        time.sleep(0.01)
    triton_kernels._prepared.clear()  # as in a new process
    prepare("first", lambda: launch(kernel, D=4))
    prepare("second", lambda: launch(kernel, D=5))
    launch(kernel, D=5)
    assert [constant for _, constant, *_ in kernel.function.compiled] == [2, 5]


def test_workers_run_tasks_at_once_and_end(monkeypatch):
    workers = Workers()
    workers.limit = 2
    meeting = threading.Barrier(2)  # passed only by two tasks at once
    futures = [workers.submit(lambda: meeting.wait(60)) for _ in range(6)]
    assert sorted(future.result(60) for future in futures) == [0, 0, 0, 1, 1, 1]
    deadline = time.monotonic() + 60
    while any(thread.name == "equipoise-compiler" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_program_that_ends_does_not_wait_for_tasks_that_have_not_begun():
    code = (
        "import time\nfrom equipoise.arrays.triton_kernels import Workers\nworkers = Workers()\nworkers.limit = 1\n"
        "for i in range(1000): workers.submit(lambda: time.sleep(0.3) or print('done', flush=True))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""
    assert 1 <= done.stdout.count("done") < 20


def test_triton_is_started_once(monkeypatch):
    started = []
    monkeypatch.setattr(triton_kernels, "_start_triton", lambda: started.append(threading.current_thread().name))
    monkeypatch.setattr(triton_kernels, "_started", False)
    monkeypatch.setattr(triton_kernels, "_start", None)
    for _ in range(2):
        triton_kernels.start()
        triton_kernels._start.result(60)
    assert started == ["equipoise-compiler"]


RECORDING = """
import sys
import torch
from equipoise.arrays.triton_kernels import META, Kernel, recorded

class Function:
    fn = type("fn", (), {"__name__": "_kernel"})

kernel = Kernel(Function)

def launch():
    X = torch.empty((6, 4), device=META)
    padded = torch.nn.functional.pad(X[1:].square(), (0, 2)).contiguous()
    sums = (X / 2 + padded[0, :4]).sum(dim=1, dtype=torch.float64)
    kernel[(1,)](padded, sums, torch.empty_like(X).view(torch.int32), torch.zeros(3, device=META), X.T, 5)

(call,) = recorded(launch)
*tensors, number = call.arguments
print([(str(x.dtype)[6:], tuple(x.shape), x.device.type) for x in tensors], number)
print([name for name in ("sympy", "torch._dynamo") if name in sys.modules])
"""


def test_recorded_launches_keep_types_and_shapes_without_importing_the_compiler_of_pytorch():
    done = subprocess.run([sys.executable, "-c", RECORDING], capture_output=True, text=True, check=True, timeout=120)
    arguments, imported = done.stdout.splitlines()
    shapes = [("float32", (5, 6)), ("float64", (6,)), ("int32", (6, 4)), ("float32", (3,)), ("float32", (4, 6))]
    assert arguments == f"{[(*shape, 'meta') for shape in shapes]} 5"
    assert imported == "[]"

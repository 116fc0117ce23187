"""The thread pool of the core: same bytes, several callers at once, forks, and threads that cannot be started."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from equipoise import _core

linux = pytest.mark.skipif(sys.platform != "linux", reason="address space is limited and processes are forked on Linux")


def field(Y, threads):
    potential, half = np.empty((len(Y), 1)), np.empty((len(Y), 1, Y.shape[1]))
    _core.field(_core.Kernel.gaussian(), np.ones((len(Y), 1)), Y, potential, half, threads)
    return np.concatenate([potential, half[:, 0]], axis=1)


@pytest.fixture
def Y(rng):
    return rng.standard_normal((1500, 2))


@pytest.mark.parametrize("threads", [-(2**31), -1, 0, 2, 3, 7, 2**31 - 1])
def test_any_number_of_threads_gives_the_same_bytes(Y, threads):
    assert_array_equal(field(Y, threads), field(Y, 1))


@pytest.mark.parametrize(("callers", "threads", "repeats"), [(6, 3, 5), (24, 2, 3)])  # 24: more than loops in the pool
def test_callers_in_several_threads_get_the_same_bytes(Y, callers, threads, repeats):
    truth, results, begin = field(Y, 1), [], threading.Barrier(callers)

    def call():
        begin.wait()
        results.extend(field(Y, threads) for _ in range(repeats))

    started = [threading.Thread(target=call) for _ in range(callers)]
    for caller in started:
        caller.start()
    for caller in started:
        caller.join()
    assert len(results) == callers * repeats
    for result in results:
        assert_array_equal(result, truth)


@linux
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_parallel_loops_work_after_a_fork(Y):
    truth = field(Y, 4)  # starts threads, which the child does not have
    child = os.fork()
    if child == 0:
        os._exit(0 if (field(Y, 4) == truth).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


LIMITED = """
import resource
import numpy as np
from equipoise import _core

Y = np.random.default_rng(0).standard_normal((1500, 2))
def field(threads):
    potential, half = np.empty((1500, 1)), np.empty((1500, 1, 2))
    _core.field(_core.Kernel.gaussian(), np.ones((1500, 1)), Y, potential, half, threads)
    return half

def count_threads():
    return [line for line in open("/proc/self/status") if line.startswith("Threads")]

truth, before = field(1), count_threads()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**22, size + 2**22))  # less than the stack of one thread
assert (field(16) == truth).all()
assert count_threads() == before
try:
    np.empty(2**23)
except MemoryError:
    print("still healthy")
"""


@linux
def test_loops_run_on_fewer_threads_when_none_can_be_started():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    child = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, env=environment, timeout=600
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() == "still healthy"

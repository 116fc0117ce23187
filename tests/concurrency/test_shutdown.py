"""An interpreter that ends while fits run in daemon threads ends at once, without a crash."""

import subprocess
import sys

import pytest

CODE = """
import sys, threading, time
import numpy as np
import equipoise as eq

X = np.random.default_rng(0).normal(size=({n}, 20))
running = threading.Event()
method = eq.{method}
threading.Thread(target=method.fit, args=[X], daemon=True).start()
assert running.wait(120)
time.sleep({delay})
{ending}
"""
TSNE = 'TSNE(n_iter=10**6, n_jobs=2, engine="{}", random_state=0, callbacks=[lambda i, loss, Y: running.set()])'
METHODS = {
    "mesh": TSNE.format("grid"),
    "torch": TSNE.format("torch").replace('engine="torch"', 'engine="torch", device="cpu"'),
    "all pairs": TSNE.format("exact"),
    "MDS": "MDS(n_iter=10**6, tol=1e-300, n_jobs=2, random_state=0, callbacks=[lambda i, loss, Y: running.set()])",
}


@pytest.mark.parametrize("ending, code", [("", 0), ("raise SystemExit(3)", 3)], ids=["end of program", "SystemExit"])
@pytest.mark.parametrize("name", METHODS)
def test_interpreter_ends_while_a_fit_runs_in_a_daemon_thread(name, ending, code):
    n = 500 if name == "torch" else 3000  # the first report comes after 50 iterations
    program = CODE.format(method=METHODS[name], n=n, delay=0.01, ending=ending)
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert child.returncode == code, child.stderr
    assert "Fatal" not in child.stderr


JOINING = """
import atexit, os, threading

@atexit.register  # before the import of equipoise: handlers run in reverse order
def join():
    ending.set()
    thread.join(60)
    os._exit(1 if thread.is_alive() else 3)

import numpy as np
import equipoise as eq

def callback(i, loss, Y):
    running.set()
    if ending.is_set():
        raise SystemExit

X = np.random.default_rng(0).normal(size=(3000, 20))
running, ending = threading.Event(), threading.Event()
method = eq.TSNE(n_iter=10**6, n_jobs=2, random_state=0, callbacks=[callback])
thread = threading.Thread(target=method.fit, args=[X], daemon=True)
thread.start()
assert running.wait(120)
"""


def test_a_handler_of_atexit_can_join_a_daemon_thread():
    child = subprocess.run([sys.executable, "-c", JOINING], capture_output=True, text=True, timeout=300)
    assert child.returncode == 3, child.stderr


IN_COMPILED_CODE = """
import sys, threading
import numpy as np
from scipy import fft
from equipoise.optimize.descent import computation

k, running = np.ones((300, 300)), threading.Event()

def transform():
    while True:
        with computation:
            running.set()
            fft.dctn(k, type=1)

for _ in range(int(sys.argv[1])):
    threading.Thread(target=transform, daemon=True).start()
assert running.wait(120)
"""


@pytest.mark.parametrize("threads", ["1", "4"])
def test_the_end_of_a_program_waits_for_computations_in_daemon_threads(threads):
    command = [sys.executable, "-c", IN_COMPILED_CODE, threads]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr  # SciPy's code aborts the process if its thread is ended there

"""Fits in several threads and processes at once: the same results as alone, and BLAS settings restored."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from support.methods import PUBLIC, brief
from threadpoolctl import threadpool_info, threadpool_limits

import equipoise as eq
from concurrency.clusters import NEW, X, brief_on_clusters
from equipoise.linalg.pca import one_blas_thread

METHODS = [Method for Method in PUBLIC if Method is not eq.Parametric]
PROCESSES = (eq.TSNE, eq.UMAP, eq.MDS, eq.Isomap)  # one for each kind of problem
# of brief fits; set here, because filters are shared by all threads and a thread that restores them changes the others
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")


def result(Method):
    """Return the map and the transform of a method as bytes."""
    fitted = brief_on_clusters(Method).fit(X)
    return np.asarray(fitted.embedding_).tobytes() + np.asarray(fitted.transform(NEW)).tobytes()


def settings():
    """Return the numbers of threads of the BLAS and OpenMP libraries."""
    return {library["filepath"]: library["num_threads"] for library in threadpool_info()}


@pytest.fixture(scope="module")
def alone():
    return {Method: result(Method) for Method in METHODS}


@pytest.fixture(autouse=True)
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        before = settings()
        yield
        after = settings()
    assert {name: after[name] for name in before} == before


COUNTING = """
import os
import equipoise as eq
from concurrency.clusters import X, brief_on_clusters
from equipoise.neighbors.panels import Panels

def nearest(self, *arguments, search=Panels.nearest, **options):
    searched.append(len(arguments))
    return search(self, *arguments, **options)

searched, Panels.nearest = [], nearest
brief_on_clusters(eq.TSNE, n_jobs=1).fit(X)
before = len(os.listdir("/proc/self/task"))
fitted = brief_on_clusters(eq.TSNE, n_jobs=2).fit(X)
print(fitted.engine_, len(searched) > 0, len(os.listdir("/proc/self/task")) > before)
"""


@linux
def test_fits_use_the_mesh_the_compiled_search_and_the_thread_pool():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", COUNTING]
    child = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert child.stdout.split() == ["grid", "True", "True"], child.stdout + child.stderr


def test_fits_in_a_thread_pool_equal_fits_alone(alone):
    work = METHODS * 2
    with ThreadPoolExecutor(6) as pool:
        for Method, found in zip(work, pool.map(result, work), strict=True):
            assert found == alone[Method], Method.__name__


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fits_in_joblib_equal_fits_alone(alone, backend, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    found = joblib.Parallel(2, backend=backend)(joblib.delayed(result)(Method) for Method in PROCESSES)
    assert found == [alone[Method] for Method in PROCESSES]


def in_threads(Method):
    """Return the results of two threads of this process."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(result, [Method, Method]))


@linux
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_started_after_use_equal_fits_alone(alone, start, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    context = multiprocessing.get_context(start)
    with context.Pool(2) as pool:
        work = pool.map_async(in_threads, PROCESSES)  # threads within processes
        assert work.get(timeout=300) == [[alone[Method]] * 2 for Method in PROCESSES]


def openmp_result(name):
    """Return bytes computed with OpenMP: by faiss or PyTorch."""
    table = np.random.default_rng(0).normal(size=(2000, 12))
    if name == "faiss":
        return eq.neighbors.nearest_neighbors(table, 5, "manhattan", n_threads=2).indices.tobytes()
    if name == "torch engine":
        problem = eq.TSNE(engine="torch", device="cpu", init="random", random_state=0, n_jobs=2).problem(table)
        return problem.optimize(n_iter=2).shape
    method = eq.TSNE(perplexity=10, n_jobs=2)
    return eq.Parametric(method, epochs=1, device="cpu", n_jobs=2, random_state=0).fit_transform(table).shape


@linux
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["faiss", "torch engine", "encoder"])
def test_openmp_works_in_a_process_forked_after_its_use(name):
    if name == "encoder" and pytest.importorskip("torch").cuda.is_available():
        pytest.skip("where there is a GPU, PyTorch refuses to differentiate in a process forked after it did")
    before = settings()
    expected = openmp_result(name)  # starts the threads of OpenMP, which the child does not have
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(openmp_result, [name]).get(timeout=60) == expected
    after = settings()
    assert {library: after[library] for library in before} == before


@linux
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("Method", [eq.TSNE, eq.PCA], ids=lambda Method: Method.__name__)
def test_transform_by_torch_works_in_a_process_forked_after_a_fit(Method):
    import torch

    table = np.random.default_rng(0).normal(size=(2000, 12))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        fitted = brief(Method, engine="torch", device="cpu", n_iter=2).fit(table)
        expected = fitted.transform(table[:500] + 0.1).tobytes()

        def transform():
            found = fitted.transform(table[:500] + 0.1).tobytes()
            os._exit(0 if found == expected and torch.get_num_threads() == 1 else 1)

        child = multiprocessing.get_context("fork").Process(target=transform)
        child.start()
        child.join(60)
        child.kill()
        assert child.exitcode == 0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


TIGHT_CLUSTERS = """
import os
import numpy as np
import equipoise as eq

table = np.random.default_rng(0).normal(size=(1500, 12))
table = table[np.arange(1500) % 10] + 1e-5 * table
method = eq.TSNE(n_iter=1, init="random", perplexity=10, random_state=0, n_jobs=1)  # its fit imports faiss
expected = method.fit_transform(table)
child = os.fork()
if child == 0:
    os._exit(0 if (method.fit_transform(table) == expected).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@linux
def test_search_in_tight_clusters_works_in_a_process_forked_after_it():
    """Where products are too inaccurate, faiss compares the rows again."""
    command = [sys.executable, "-W", "ignore", "-c", TIGHT_CLUSTERS]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as program:
        try:
            _, errors = program.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)  # the child too
            raise
    assert program.returncode == 0, errors


class Stop(Exception):
    pass


@pytest.mark.parametrize("Method", [eq.TSNE, eq.UMAP, eq.MDS, eq.PCA], ids=lambda Method: Method.__name__)
def test_a_callback_that_raises_reaches_the_caller_and_leaves_nothing(alone, Method):
    def fail(iteration, loss, Y):
        raise Stop(f"at {iteration}")

    flow = {"solver": "flow"} if Method is eq.PCA else {}
    before = threading.active_count()
    with pytest.raises(Stop, match="at"):
        brief_on_clusters(Method, callbacks=[fail], **flow).fit(X)
    assert threading.active_count() == before
    assert result(Method) == alone[Method]


def test_overlapping_contexts_restore_blas_when_the_last_one_ends():
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread():
            entered.set()
            leave.wait()

    before = blas_threads()
    other = threading.Thread(target=hold)
    with one_blas_thread():
        other.start()
        entered.wait()
    assert set(blas_threads()) == {1}  # the other thread still needs the limit
    leave.set()
    other.join()
    assert blas_threads() == before


def blas_threads():
    """Return the numbers of threads of NumPy and SciPy; the BLAS of faiss has one for each thread of a program."""
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return [library["num_threads"] for library in blas if library.get("threading_layer") != "openmp"]


@linux
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_within_a_context_has_the_settings_from_before():
    before = blas_threads()
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            restored = blas_threads() == before
            with one_blas_thread():
                limited = set(blas_threads()) == {1}
            os._exit(0 if restored and limited and blas_threads() == before else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert set(blas_threads()) == {1}
    assert blas_threads() == before

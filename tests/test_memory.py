"""estimate_memory is an upper bound on the peak, and not far above it."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from support.memory_limits import verdicts

import equipoise as eq
from equipoise.arrays import memory_limits
from equipoise.memory import GPU_OVERHEAD, OVERHEAD, host_memory, require_address_space

CHILD = """
import sys
import numpy as np
import faiss, scipy.fft, sklearn.decomposition
import equipoise as eq

def field(name):
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1])

n, D, engine, metric = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
X = np.random.RandomState(0).standard_normal((n, D)).astype(np.float32)
before = field("VmRSS")
eq.TSNE(random_state=0, n_iter=int(sys.argv[5]), engine=engine, metric=metric, n_jobs=2).fit(X)
print(field("VmHWM") - before, field("VmHWM") - X.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(
    ("n", "D", "engine", "metric", "n_iter"),
    [
        (20_000, 20, "grid", "euclidean", 30),
        (6_000, 30, "exact", "euclidean", 30),
        pytest.param(4_000, 20, "reference", "euclidean", 1, marks=pytest.mark.trials),
        pytest.param(20_000, 384, "grid", "euclidean", 1, marks=pytest.mark.trials),
        (10_000, 384, "grid", "cosine", 1),
    ],
)
def test_peak_memory_stays_below_the_estimate(n, D, engine, metric, n_iter):
    command = [sys.executable, "-c", CHILD, str(n), str(D), engine, metric, str(n_iter)]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, peak = map(int, child.stdout.split())
    estimate = eq.estimate_memory(n, D, engine=engine, metric=metric).peak
    assert 0.3 * (estimate - OVERHEAD) < grown and peak < estimate


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (eq.GSNE(alpha=1, engine="grid"), r"GSNE compares all pairs of 60 points.* GB are available; use .* alpha < 1"),
        (eq.TSNE(engine="exact"), r'TSNE compares all pairs of 60 points.*; use fewer rows, or engine="grid"'),
        (eq.TSNE(engine="exact", metric="cosine"), r"needs about 8.64e-05 GB"),
        (eq.DKPCA(engine="reference"), r'DKPCA compares all pairs of 60 points.*; use fewer rows, or engine="grid"'),
        (eq.Isomap(), r"Isomap compares all pairs of 60 points.*; use fewer rows or n_landmarks=500"),
        (eq.ClassicalMDS(metric="cosine"), r"ClassicalMDS compares all pairs of 60 points.*n_landmarks=500"),
        (eq.MDS(), r'MDS compares all pairs of 60 points.*; use fewer rows or engine="random_pairs"$'),
        (eq.MDS(engine="stored", metric="cosine"), r"needs about 7.2e-06 GB"),
        (eq.MDS(stress="ordinal"), r"needs about 0.000122 GB, but only 1e-06 GB are available; use fewer rows$"),
        (
            eq.MDS(weights=np.ones((60, 60))),
            r"MDS compares all pairs of 60 points.*; use fewer rows or sparse weights$",
        ),
    ],
)
def test_all_pairs_beyond_the_available_memory_raise_before_they_are_allocated(method, message, monkeypatch):
    monkeypatch.setattr("equipoise.memory.available_memory", lambda: 1e3)
    with pytest.raises(MemoryError, match=message):
        method.fit(np.random.default_rng(0).normal(size=(60, 5)))


def test_lle_from_distances_raises_before_all_pairs_are_allocated(monkeypatch):
    space = eq.spaces.Euclidean(np.random.default_rng(0).normal(size=(60, 5)))
    fitted = eq.LLE(metric="precomputed").fit(space.matrix())
    monkeypatch.setattr("equipoise.memory.available_memory", lambda: 1e3)
    message = r"LLE compares all pairs of 60 points, which needs about 5.76e-05 GB.*; use fewer rows or a table"
    for call in (
        lambda: eq.LLE().fit(space),
        lambda: eq.LLE(metric="precomputed").fit(space.matrix()),
        lambda: fitted.transform(space.matrix()[:3] + 1),
    ):
        with pytest.raises(MemoryError, match=message):
            call()
    eq.LLE().fit(np.random.default_rng(0).normal(size=(60, 5)))


@pytest.mark.parametrize("method", [eq.ClassicalMDS(n_landmarks=20), eq.Isomap(n_landmarks=20)], ids=repr)
def test_landmarks_beyond_the_available_memory_raise(method, monkeypatch):
    monkeypatch.setattr("equipoise.methods.nearest_gram.available_memory", lambda: 1e3)
    message = r" of 60 points with n_landmarks=20 needs about 3.84e-05 GB.*; use fewer rows or a smaller n_landmarks$"
    with pytest.raises(MemoryError, match=type(method).__name__ + message):
        method.fit(np.random.default_rng(0).normal(size=(60, 5)))


@pytest.mark.parametrize(
    ("method", "fails"),
    [
        (eq.ClassicalMDS(metric="cosine"), True),
        (eq.ClassicalMDS(n_landmarks=20), True),
        (eq.Isomap(), True),
        (eq.Isomap(n_landmarks=20), True),
        (eq.ClassicalMDS(), False),
        (eq.PCA(), False),
        (eq.LLE(), False),
        (eq.LaplacianEigenmaps(), False),
    ],
    ids=repr,
)
def test_transform_raises_if_distances_to_all_points_exceed_the_available_memory(method, fails, monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 5))
    fitted = clone(method).fit(X)
    monkeypatch.setattr("equipoise.memory.available_memory", lambda: 1e3)
    fitted.transform(X[:3] + 1)  # little memory is not compared
    monkeypatch.setattr("equipoise.memory.LITTLE", 0)
    message = rf"^{type(method).__name__}.transform compares 3 rows with 60 points.*; transform fewer rows at a time$"
    with pytest.raises(MemoryError, match=message) if fails else nullcontext():
        fitted.transform(X[:3] + 1)


def test_a_dense_decomposition_raises_if_the_available_memory_is_too_small(monkeypatch):
    monkeypatch.setattr("equipoise.linalg.eigen.available_memory", lambda: 1e3)
    with pytest.raises(
        MemoryError, match=r"^decomposing a dense matrix with 400 rows needs about .* use fewer rows or components"
    ):
        eq.LaplacianEigenmaps(n_components=100).fit(np.random.default_rng(0).normal(size=(400, 5)))


def test_mds_of_some_pairs_needs_no_memory_for_all_pairs(monkeypatch):
    monkeypatch.setattr("equipoise.memory.available_memory", lambda: 1e3)
    X = np.random.default_rng(0).normal(size=(60, 5))
    for engine in ("recomputed", "random_pairs"):
        eq.MDS(engine=engine, n_iter=1).fit(X)
    eq.MDS(weights=sparse.csr_matrix(np.ones((60, 60))), n_iter=1).fit(X)


def test_neighbour_engines_need_no_memory_for_all_pairs(monkeypatch):
    monkeypatch.setattr("equipoise.memory.available_memory", lambda: 1e3)
    eq.TSNE(engine="grid", n_iter=1).fit(np.random.default_rng(0).normal(size=(60, 5)))


BLOBS = np.random.default_rng(0).normal(size=(60, 5))


@pytest.mark.parametrize(
    "method",
    [
        eq.TSNE(engine="grid", n_iter=1),
        eq.PowerSNE(engine="sampled", n_iter=1),
        eq.UMAP(engine="negative_sampling", n_iter=1),
        eq.DKLLE(engine="grid", n_iter=1),
    ],
    ids=lambda method: type(method).__name__,
)
@pytest.mark.parametrize("call", ["fit", "problem"])
def test_linear_engines_raise_if_the_available_memory_is_too_small(method, call, monkeypatch):
    monkeypatch.setattr("equipoise.methods.estimator.FEW", 0)
    monkeypatch.setattr("equipoise.methods.estimator.available_memory", lambda: 1e4)
    name = type(method).__name__
    message = rf"^{name} with 60 rows of 5 columns needs about \S+ GB, but only 1e-05 GB are available; use fewer rows$"
    with pytest.raises(MemoryError, match=message):
        getattr(method, call)(BLOBS)
    monkeypatch.setattr("equipoise.methods.estimator.available_memory", lambda: 1e8)
    getattr(method, call)(BLOBS)


def need(method, X):
    """Return the memory that a method expects to need for X, in bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("equipoise.methods.estimator.FEW", 0)
        patch.setattr("equipoise.methods.estimator.require_memory", raise_need)
        with pytest.raises(Need) as caught:
            method.problem(X)
    return caught.value.args[0]


class Need(Exception):
    """Raised instead of the problem being built; its argument is the need."""


def raise_need(n_bytes, *_):
    raise Need(n_bytes)


def test_the_need_of_a_fit_counts_the_copies_for_its_metric():
    X = np.random.default_rng(0).normal(size=(100, 2000)) + 1
    table = X.nbytes
    euclidean = need(eq.TSNE(perplexity=5, engine="grid"), X)
    assert need(eq.TSNE(perplexity=5, engine="grid", metric="cosine"), X) >= euclidean + table
    assert need(eq.TSNE(perplexity=5, engine="grid", metric="correlation"), X) >= euclidean + 2 * table
    assert need(eq.TSNE(perplexity=5, engine="grid"), X.astype(np.float32)) == euclidean + table
    assert need(eq.UMAP(engine="negative_sampling", init="random"), X) > 8 * X.shape[0] * X.shape[1]
    assert need(eq.TSNE(perplexity=5, engine="grid", metric=lambda a, b: abs(a - b).sum()), X) > 0


def test_the_need_of_sparse_tables_and_metric_spaces_does_not_grow_with_their_shape():
    wide = sparse.csr_matrix((np.ones(2000), (np.arange(2000) % 200, 499 * np.arange(2000))), shape=(200, 10**6))
    assert need(eq.TSNE(perplexity=5, engine="grid", init="random"), wide) < 1e7
    ring = sparse.diags([np.ones(1999), np.ones(1999)], [-1, 1], format="csr")
    for method in (eq.TSNE(affinity="precomputed"), eq.UMAP(affinity="precomputed")):
        assert need(method.set_params(engine="grid", init="random"), ring) < 2e7
    space = eq.spaces.GraphGeodesic(ring, n_threads=1)
    assert need(eq.UMAP(engine="grid", init="random"), space) < 2e7


def test_main_memory_for_a_fit_on_a_gpu_excludes_what_is_on_the_gpu():
    on_gpu, on_cpu = (host_memory(10**6, 50, 2, 90, engine, "euclidean", kl=True) for engine in ("cuda", "torch"))
    assert on_gpu == 16 * 50e6 + 160e6
    assert on_cpu == eq.estimate_memory(10**6, 50, perplexity=30, engine="torch").peak - GPU_OVERHEAD


def test_fits_that_need_little_memory_do_not_read_the_limits(monkeypatch):
    monkeypatch.setattr("equipoise.methods.estimator.available_memory", lambda: 1e3)
    eq.TSNE(engine="grid", n_iter=1).problem(BLOBS)
    with pytest.raises(MemoryError, match="TSNE with 7,000 rows of 1 column needs"):
        eq.TSNE(n_iter=1).fit(np.zeros((7000, 1)))


def group(folder, limit, usage, **stat):
    """Write the files of a control group of version 2."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{usage}\n")
    (folder / "memory.stat").write_text("".join(f"{name} {value}\n" for name, value in stat.items()))


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """Return the root of control groups that holds this process in job/step."""
    (tmp_path / "own").write_text("0::/job/step\n")
    monkeypatch.setattr(memory_limits, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory_limits, "CGROUPS", tmp_path / "root")
    return tmp_path / "root"


def test_available_memory_heeds_the_nearest_limit_of_nested_control_groups(groups):
    group(groups / "job" / "step", "max", 2000)
    group(groups / "job", 5000, 2000)
    group(groups, 90_000, 2000)
    assert memory_limits.available_memory() == 3000
    assert memory_limits.physical_memory() == 5000
    group(groups, 2500, 2000)
    assert memory_limits.available_memory() == 500
    group(groups / "job" / "step", 2200, 2000)
    assert memory_limits.available_memory() == 200
    for folder in (groups / "job" / "step", groups / "job", groups):
        group(folder, "max", 2000)
    assert memory_limits.available_memory() > 1e6


def test_cached_files_of_a_control_group_count_as_available(groups):
    group(groups / "job", 5000, 4990, anon=1000, inactive_file=3000, active_file=500)
    assert memory_limits.available_memory() == 3510
    (groups.parent / "own").write_text("4:memory:/job\n3:cpu:/other\n")  # version 1
    folder = groups / "memory" / "job"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("6000\n")
    (folder / "memory.usage_in_bytes").write_text("5990\n")
    (folder / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 4000\ntotal_active_file 90\n")
    assert memory_limits.available_memory() == 4100


def test_each_resource_limit_is_compared_with_what_counts_towards_it(monkeypatch, tmp_path):
    resource = pytest.importorskip("resource")
    page, limits = resource.getpagesize(), {resource.RLIMIT_AS: 5000, resource.RLIMIT_DATA: 1000}
    (tmp_path / "statm").write_text("2000 900 300 1 0 400 0\n")  # pages: all, ..., private data
    monkeypatch.setattr(memory_limits, "STATM", tmp_path / "statm")
    monkeypatch.setattr(memory_limits, "getrlimit", lambda kind: (limits[kind] * page,) * 2)
    assert memory_limits.address_space_left() == 600 * page  # of private data
    limits[resource.RLIMIT_DATA] = 4000
    assert memory_limits.address_space_left() == 3000 * page  # of the address space
    monkeypatch.setattr(memory_limits, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert memory_limits.address_space_left() == memory_limits.address_limit() == float("inf")


def test_estimate_grows_with_samples_features_and_perplexity():
    base = eq.estimate_memory(200_000, 50)
    assert eq.estimate_memory(200_000, 500).peak > base.peak
    assert eq.estimate_memory(200_000, 50, perplexity=100).peak > base.peak
    assert eq.estimate_memory(200_000, 50, kl=False).optimize > base.optimize
    twice = eq.estimate_memory(400_000, 50).peak - OVERHEAD
    assert twice == pytest.approx(2 * (base.peak - OVERHEAD), rel=0.01)
    assert eq.estimate_memory(40_000, 50, engine="exact").peak > 4 * 40_000**2
    assert "GB" in str(base)


def test_docstring_example_is_current():
    assert str(eq.estimate_memory(1_000_000, 50)) in (eq.estimate_memory.__doc__ or "")


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="n must be an integer >= 2"):
        eq.estimate_memory(1, 5)
    with pytest.raises(ValueError, match="n_components integers >= 1"):
        eq.estimate_memory(100, 5, n_components=0)
    with pytest.raises(ValueError, match=r"metric must be one of .*; got 'cosinus'"):
        eq.estimate_memory(100, 5, metric="cosinus")
    with pytest.raises(ValueError, match=r"unknown engine .*; choose from"):
        eq.estimate_memory(100, 5, engine="fast")


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux")
@pytest.mark.parametrize("name", ["TSNE", "Isomap", "PCA"])
def test_limited_address_space_ends_in_a_map_or_a_memory_error(name):
    assert verdicts(name, [8, 100, 2048]) == ["MemoryError", "MemoryError", "finite"]


def test_every_core_needs_address_space_for_blas_until_faiss_is_imported(monkeypatch):
    monkeypatch.setattr("equipoise.memory.address_space_left", lambda: 2e9)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delitem(sys.modules, "faiss", raising=False)
    with pytest.raises(MemoryError, match=r"a fit needs about 13 GB of address space.*OPENBLAS_NUM_THREADS=1"):
        require_address_space(0, 1, "a fit")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    require_address_space(0, 1, "a fit")
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setitem(sys.modules, "faiss", None)
    require_address_space(0, 1, "a fit")

"""estimate_memory is an upper bound on the peak, and not far above it."""

import subprocess
import sys

import pytest
from support.memory_limits import verdict

import equipoise as eq
from equipoise.memory import OVERHEAD

CHILD = """
import sys
import numpy as np
import faiss, scipy.fft, sklearn.decomposition
import equipoise as eq

def field(name):
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1])

n, D, engine = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
X = np.random.RandomState(0).standard_normal((n, D))
before = field("VmRSS")
eq.TSNE(random_state=0, n_iter=30, engine=engine, n_jobs=2).fit(X)
print(field("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(("n", "D", "engine"), [(40_000, 20, "grid"), (6_000, 30, "exact")])
def test_peak_memory_stays_below_the_estimate(n, D, engine):
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(n), str(D), engine], capture_output=True, text=True, check=True
    )
    peak, estimate = int(child.stdout), eq.estimate_memory(n, D, engine=engine).peak
    assert 0.3 * (estimate - OVERHEAD) < peak < estimate


def test_estimate_grows_with_samples_features_and_perplexity():
    base = eq.estimate_memory(200_000, 50)
    assert eq.estimate_memory(200_000, 500).peak > base.peak
    assert eq.estimate_memory(200_000, 50, perplexity=100).peak > base.peak
    assert eq.estimate_memory(200_000, 50, kl=False).optimize > base.optimize
    assert eq.estimate_memory(400_000, 50).peak == pytest.approx(2 * base.peak, rel=0.1)
    assert eq.estimate_memory(40_000, 50, engine="exact").peak > 4 * 40_000**2
    assert "GB" in str(base)


def test_docstring_example_is_current():
    assert str(eq.estimate_memory(1_000_000, 50)) in (eq.estimate_memory.__doc__ or "")


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="n must be at least 2"):
        eq.estimate_memory(1, 5)
    with pytest.raises(ValueError, match="n_components at least 1"):
        eq.estimate_memory(100, 5, n_components=0)
    with pytest.raises(ValueError, match=r"unknown engine .*; choose from"):
        eq.estimate_memory(100, 5, engine="fast")


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux")
@pytest.mark.parametrize("name", ["TSNE", "Isomap", "PCA"])
@pytest.mark.parametrize(("megabytes", "end"), [(8, "MemoryError"), (100, "MemoryError"), (2048, "finite")])
def test_limited_address_space_ends_in_a_map_or_a_memory_error(name, megabytes, end):
    assert verdict(name, megabytes) == end

"""Fixtures and settings for all tests."""

import os

# Parallel test workers share the cores; without this, every worker would start one thread per core.
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    threads = max(1, (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, str(threads))  # read by NumPy, faiss and PyTorch when they are imported

import numpy as np
import pytest
from hypothesis import settings
from support.browser import launched

settings.register_profile("equipoise", deadline=None)  # the first example of a run may wait for an import
settings.load_profile("equipoise")


def pytest_collection_modifyitems(items):
    """Mark the tests that use the `browser` fixture, and run long tests first, so that workers end together."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser

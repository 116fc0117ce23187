"""The package without PyTorch: not installed, or not yet imported."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def test_cpu_methods_work_without_pytorch():
    code = """
        from importlib.machinery import PathFinder
        found = PathFinder.find_spec
        PathFinder.find_spec = lambda name, *rest: None if name == "torch" else found(name, *rest)
        import numpy as np
        import equipoise as eq
        X = np.random.default_rng(0).standard_normal((60, 4))
        assert eq.TSNE(random_state=0, n_iter=20, perplexity=5).fit_transform(X).shape == (60, 2)
        for parameters in ({"engine": "torch"}, {"device": "cuda"}):
            try:
                eq.TSNE(**parameters).fit(X)
            except ImportError as error:
                print(error)
    """
    completed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    line = 'engine="torch" needs PyTorch: pip install "equipoise[gpu]", or torch itself'
    assert completed.stdout.splitlines() == [line, line] and completed.stderr == ""


def test_import_does_not_import_pytorch():
    code = "import sys, equipoise, equipoise.cli; print('torch' in sys.modules)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "False\n"

"""Many fits in one process hold no more memory, threads or file descriptors than a few."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.trials
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_many_fits_in_one_process_hold_constant_resources():
    command = [sys.executable, "-m", "tests.concurrency", "--fits", "30"]
    child = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert child.returncode == 0, child.stdout + child.stderr

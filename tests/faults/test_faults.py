"""Short versions of the fault trials; `python -m tests.faults --signals 200 --mutations 5000` is the long one."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks, and limits memory"),
]


def run_faults(*words):
    """Run the trials in a process without threads, because they fork."""
    command = [sys.executable, "-m", "tests.faults", "--jobs", "1", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.mark.trials
def test_disturbed_runs_leave_whole_files_and_resume_to_the_same_bytes():
    done = run_faults("--signals", "14", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("14 of 14 signal trials")


def test_damaged_files_are_refused_by_name_and_execute_nothing():
    done = run_faults("--mutations", "300", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("300 of 300 damaged files")

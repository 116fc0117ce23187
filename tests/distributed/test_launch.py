"""Local ranks: arguments, output, errors, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from support import rank_functions

from equipoise.distributed import RankError, launch, run_ranks
from equipoise.distributed.rank_function import execute, load_function

FUNCTIONS = str(Path(rank_functions.__file__))
pytestmark = pytest.mark.ranks


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def wait_for(condition):
    """Wait until a condition holds; the time limit of the test ends an endless wait."""
    while not condition():
        time.sleep(0.05)


def pids_in(folder, ranks):
    paths = [folder / str(rank) for rank in range(ranks)]
    wait_for(lambda: all(path.exists() and path.read_text() for path in paths))
    return [int(path.read_text()) for path in paths]


WRITE_PID = """
import os, pathlib, sys, time
path = pathlib.Path(sys.argv[1], os.environ["RANK"])
path.write_text(str(os.getpid()))
others = lambda: len([p for p in path.parent.iterdir() if p.name.isdecimal()]) == int(os.environ["WORLD_SIZE"])
while not others():
    time.sleep(0.01)
if path.name == sys.argv[2]:
    sys.exit("no more")
time.sleep(600)
"""


def test_command_gets_variables_and_rank_0_is_shown(capfd):
    code = (
        "import os; print(*(os.environ[n] for n in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'OMP_NUM_THREADS', 'COLOUR')))"
    )
    assert run_ranks([sys.executable, "-c", code], 2, variables={"COLOUR": "red"}) == [None, None]
    share = max(len(os.sched_getaffinity(0)) // 2, 1) if hasattr(os, "sched_getaffinity") else os.cpu_count() // 2
    assert capfd.readouterr().out == f"0 2 0 {share} red\n"


def test_failed_command_ends_the_others(tmp_path, capfd):
    with pytest.raises(RankError, match=r'rank 1 \(host .*\) failed in "unknown": exit status 1: no more'):
        run_ranks([sys.executable, "-c", WRITE_PID, str(tmp_path), "1"], 2)
    assert not any(is_running(pid) for pid in pids_in(tmp_path, 2))
    assert capfd.readouterr().err == "no more\n"


@pytest.mark.parametrize(
    ("guard", "number"),
    [
        ("GUARD_BY_KERNEL", signal.SIGINT),
        ("GUARD_BY_KERNEL", signal.SIGTERM),
        ("GUARD_BY_KERNEL", signal.SIGKILL),
        ("GUARD_BY_PIPE", signal.SIGKILL),
    ],
)
def test_no_rank_outlives_its_parent(tmp_path, guard, number):
    code = f"""
        import sys
        from equipoise.distributed import launch
        if {guard == "GUARD_BY_PIPE"}:
            launch.sys = type("Other", (), dict(vars(sys), platform="other"))
        launch.run_ranks([sys.executable, "-c", {WRITE_PID!r}, {str(tmp_path)!r}, "none"], 2)
    """
    if guard == "GUARD_BY_KERNEL" and sys.platform != "linux":
        pytest.skip("only Linux kills the children of a process that ends")
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.PIPE, text=True)
    pids = pids_in(tmp_path, 2)
    assert all(map(is_running, pids))
    parent.send_signal(number)
    errors = parent.communicate()[1]
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    wait_for(lambda: not any(map(is_running, pids)))


def test_rank_that_does_not_end_is_named():
    code = "import os, time; time.sleep(600 if os.environ['RANK'] == '1' else 0)"
    with pytest.raises(RankError, match=r'rank 1 .* failed in "end": did not end within 1 s of rank 0'):
        run_ranks([sys.executable, "-c", code], 2, timeout=1)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ValueError, "ranks=0 must be a positive integer", lambda: run_ranks("a:b", 0)),
        (ValueError, "arguments are for functions", lambda: run_ranks(["true"], 1, [3])),
        (ValueError, "target is empty", lambda: run_ranks([], 1)),
        (ValueError, "timeout=-1 must be a positive number", lambda: run_ranks("a:b", 1, timeout=-1)),
        (ValueError, "'nothing' names no function; write module:function", lambda: load_function("nothing")),
        (FileNotFoundError, "no file missing.py, from which f", lambda: load_function("missing.py:f")),
        (AttributeError, "math has no function 'pie'", lambda: load_function("math:pie")),
    ],
)
def test_wrong_arguments_are_refused(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_function_of_one_rank(capfd):
    assert len(run_ranks(f"{FUNCTIONS}:collectives", 1)[0]) == 2
    with pytest.raises(RankError, match=r'rank 0 .* failed in "neighbours": MemoryError: 12 GB are needed'):
        run_ranks(f"{FUNCTIONS}:fail", 1, ["raise", 0, "."])
    assert "Traceback" in capfd.readouterr().err
    with pytest.raises(RankError, match="failed in \"start\": ModuleNotFoundError: No module named 'nowhere'"):
        run_ranks("nowhere:f", 1)


def test_execute_names_the_stage_of_an_error():
    def divide(group, x):
        with group.stage("division"):
            return 1 / x

    assert execute(divide, [2], 10) == 0.5
    with pytest.raises(RankError, match='failed in "division": ZeroDivisionError: division by zero'):
        execute(divide, [0], 10)
    with pytest.raises(RankError, match='failed in "unknown": ZeroDivisionError: division by zero'):
        execute(lambda group: 1 / 0, [], 10)


def test_ports_are_free():
    assert 1024 <= launch.free_port("127.0.0.1") <= 65535

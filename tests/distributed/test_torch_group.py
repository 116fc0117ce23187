"""Groups over torch.distributed with gloo: collectives, and ranks that fail, hang or are killed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support import rank_functions

from equipoise.distributed import RankError, SingleProcess, run_ranks
from equipoise.distributed.launch import free_port, rank_variables

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.ranks

FUNCTIONS = str(Path(rank_functions.__file__))
HOST = socket.gethostname()


@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives_over_gloo(ranks):
    results = run_ranks(f"{FUNCTIONS}:all_checks", ranks)
    assert results == [results[0]] * ranks
    expected = rank_functions.collectives(SingleProcess())
    assert results[0][:2] == [expected, expected]
    messages = results[0][2]
    assert list(messages) == list(rank_functions.MISTAKES)
    assert messages["value"] == (
        f"perplexity differs between ranks: 30 on {'rank 0' if ranks == 2 else 'ranks 0, 2'}, 31 on rank 1"
        f" (hosts {HOST} and {HOST})"
    )


@pytest.mark.parametrize(
    ("how", "victim", "launcher", "survivors"),
    [
        ("raise", 1, "MemoryError: 12 GB are needed", "MemoryError: 12 GB are needed"),
        ("exit", 0, "SystemExit: gave up", "SystemExit: gave up"),
        ("kill", 1, "killed by SIGKILL", "its process is gone, without an error message; was it killed?"),
        ("kill", 0, "killed by SIGKILL", "its process ended, or its machine cannot be reached"),
        ("hang", 1, "did not reach all_reduce within the time limit of 5 s", "did not reach all_reduce"),
    ],
)
def test_ranks_end_when_one_fails(how, victim, launcher, survivors, tmp_path):
    with pytest.raises(RankError) as caught:
        run_ranks(f"{FUNCTIONS}:fail", 3 if how == "kill" else 2, [how, victim, str(tmp_path)])
    begin = f'rank {victim} (host {HOST}) failed in "neighbours": '
    assert str(caught.value) == begin + launcher
    written = {path.stem: path.read_text() for path in tmp_path.iterdir()}
    assert written and str(victim) not in written
    for message in written.values():
        assert message.startswith(begin + survivors), message


def run_code(code, *variables):
    """Run a Python program in a process for each set of variables; return the outputs."""
    processes = [start_code(code, own) for own in variables]
    return [process.communicate(timeout=200)[0].strip() for process in processes]


def start_code(code, variables):
    """Start a Python program in a process with the variables of a rank, of which some are replaced."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **rank_variables(0, 2, 1), **variables},
        stdout=subprocess.PIPE,
        text=True,
    )


JOIN = """
    import os
    from equipoise.distributed import current_group, torch_group
    torch_group.__version__ += os.environ.get("SUFFIX", "")
    try:
        group = current_group(timeout=float(os.environ["LIMIT"]))
        print(group.size, flush=True)
    except (ConnectionError, ValueError) as error:
        print(error, flush=True)
    os._exit(0)
"""


def test_other_version_is_refused():
    port = str(free_port("127.0.0.1"))
    common = {"MASTER_PORT": port, "LIMIT": "100"}
    outputs = run_code(JOIN, {**common, "RANK": "0"}, {**common, "RANK": "1", "SUFFIX": "beta"})
    for output in outputs:
        assert output.startswith("equipoise version differs between ranks: ")
        assert "beta on rank 1" in output


HOST_THAT_ENDS = """
    import os
    from torch.distributed import TCPStore
    store = TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=True, wait_for_workers=False)
    before = store.num_keys()
    while store.num_keys() < before + 2:  # until rank 1 has said hello
        pass
    os._exit(0)
"""


def test_rank_0_that_ends_early_is_named():
    common = {"MASTER_PORT": str(free_port("127.0.0.1")), "LIMIT": "100"}
    host = start_code(HOST_THAT_ENDS, common)
    (output,) = run_code(JOIN, {**common, "RANK": "1"})
    host.communicate(timeout=200)
    assert output == "rank 0 ended before all ranks were connected; see its own message"


def test_ranks_that_do_not_come_are_named():
    port = str(free_port("127.0.0.1"))
    first, second = run_code(
        JOIN,
        {"MASTER_PORT": port, "LIMIT": "2", "RANK": "0"},
        {"MASTER_PORT": str(free_port("127.0.0.1")), "LIMIT": "2", "RANK": "1"},
    )
    assert first == "rank 1 did not connect within 2 s; 2 ranks were expected"
    assert second.startswith("no connection to rank 0 at 127.0.0.1:")
    assert second.endswith("check MASTER_ADDR and MASTER_PORT, and that rank 0 runs")


def test_initialised_process_group_is_used():
    code = """
        import os
        import numpy as np
        import torch.distributed as dist
        from equipoise.distributed import TorchGroup, current_group
        dist.init_process_group("gloo")
        with current_group() as group:
            assert current_group() is group and isinstance(group, TorchGroup)
            print(group.all_reduce(np.array([group.rank, 1])), flush=True)
        with TorchGroup() as second:  # on the same store
            second.barrier()
        try:
            group.barrier()
        except RuntimeError as error:
            print(error)
        os.environ["WORLD_SIZE"] = "3"
        try:
            current_group()
        except RuntimeError as error:
            print(error)
        dist.destroy_process_group()
    """
    port = str(free_port("127.0.0.1"))
    outputs = run_code(code, {"MASTER_PORT": port, "RANK": "0"}, {"MASTER_PORT": port, "RANK": "1"})
    for rank, output in enumerate(outputs):
        assert output.splitlines() == [
            "[1 2]",
            "barrier was called on a group that has been closed; use a new one",
            f"RANK={rank} and WORLD_SIZE=3 contradict torch.distributed, which was initialised as rank {rank} of 2",
        ]


def test_torchrun_starts_ranks(tmp_path):
    arguments = ["--nproc-per-node", "2", "--master-port", str(free_port("127.0.0.1")), "--log-dir", str(tmp_path)]
    module = ["-m", "equipoise.distributed.rank_process", "--report", str(tmp_path / "report"), "--timeout", "60"]
    command = [sys.executable, "-m", "torch.distributed.run", *arguments, *module]
    function = f"{FUNCTIONS}:rank_and_size"
    completed = subprocess.run([*command, function], capture_output=True, text=True, timeout=200)
    assert completed.returncode == 0, completed.stderr
    assert json.loads((tmp_path / "report").read_text()) in ({"value": [0, 2]}, {"value": [1, 2]})


def test_wrong_backend_is_refused():
    from equipoise.distributed import TorchGroup

    with pytest.raises(ValueError, match="unknown backend 'mpi'; choose from auto, gloo, nccl"):
        TorchGroup(backend="mpi")

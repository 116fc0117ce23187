"""`equipoise embed DATA --ranks N`: the same bytes for any N, outputs, Ctrl-C, faults and resuming."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.command_line import embed, names, one_line_error
from support.processes import children, is_running, rank_of

from equipoise.data import load

pytestmark = pytest.mark.ranks
SMALL = ("--n-iter", 60, "--perplexity", 10)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "digits.npy"
    np.save(path, load("digits").X)
    return path


def start(*arguments):
    """Start `equipoise embed` as a process, and return it."""
    interruptible = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also in the background
    program = f"{interruptible}; import sys; from equipoise.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "embed"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *map(str, arguments)], **streams, text=True)


def wait_for_iteration(process, least):
    """Read the output until an iteration is reported that is not below `least`."""
    for line in process.stdout:
        if line.startswith("iteration") and int(line.split()[1]) >= least:
            return
    raise AssertionError(process.communicate()[1])


def test_maps_have_the_same_bytes_for_any_number_of_ranks(tmp_path, table, capfd):
    for ranks in (1, 3):
        assert embed(table, "--ranks", ranks, *SMALL, "--out", tmp_path / f"{ranks}.npy") == 0
    shown = capfd.readouterr().out.splitlines()
    assert shown[0] == "digits: 1,797 rows, 64 columns; TSNE, seed 0, 1 rank"
    assert [line.split()[1] for line in shown if line.startswith("iteration")] == ["0", "50"] * 2
    assert sum(line.startswith("neighbours kept     ") for line in shown) == 2
    assert shown[-1] == f"wrote               {tmp_path / '3.npy'}"
    one, three = ((tmp_path / f"{ranks}.npy").read_bytes() for ranks in (1, 3))
    assert one == three
    assert np.load(tmp_path / "1.npy").shape == (1797, 2)


@pytest.mark.parametrize(("given", "used"), [(None, "auto"), ("gloo", "gloo")])
def test_ranks_on_gpus_use_the_backend_of_the_environment(tmp_path, table, monkeypatch, given, used):
    started = []
    monkeypatch.setattr("equipoise.cli.embed_ranks.choose_device", lambda engine, device: ("torch", "cuda"))
    monkeypatch.setattr("equipoise.cli.embed_ranks.run_ranks", lambda *_, variables, **__: started.append(variables))
    monkeypatch.delenv("EQUIPOISE_BACKEND", raising=False)
    if given is not None:
        monkeypatch.setenv("EQUIPOISE_BACKEND", given)
    assert embed(table, "--ranks", 2, *SMALL, "--out", tmp_path / "map.npy") == 0
    assert started == [{"EQUIPOISE_BACKEND": used}]


def test_bundled_data_principal_components_and_plots(tmp_path, capfd):
    arguments = ("--n-iter", 60, "--pca", 20, "--method", "umap", "--out", tmp_path)
    assert embed("digits", "--ranks", 2, *arguments) == 0
    assert names(tmp_path) == ["digits.csv", "digits.png"]
    header, first = (tmp_path / "digits.csv").read_text().splitlines()[:2]
    assert header == "y1,y2,class" and first.endswith(",0")
    assert "1-NN class error    " in capfd.readouterr().out


def test_zarr_is_read_and_written_in_blocks(tmp_path, table):
    zarr = pytest.importorskip("zarr")
    X = np.load(table)
    rows = zarr.open_array(str(tmp_path / "X.zarr"), mode="w", shape=X.shape, chunks=(500, 64), dtype=X.dtype)
    rows[:] = X
    assert embed(tmp_path / "X.zarr", "--ranks", 2, *SMALL, "--out", tmp_path / "map.zarr") == 0
    assert embed(table, "--ranks", 1, *SMALL, "--out", tmp_path / "map.npy") == 0
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "map.zarr"), mode="r")[:], np.load(tmp_path / "map.npy"))
    assert names(tmp_path) == ["X.zarr", "map.npy", "map.zarr"]


LONG = ("--n-iter", 900, "--perplexity", 10, "--plot", "none")


@pytest.fixture(scope="module")
def whole(tmp_path_factory, table):
    """The map of a run that was not interrupted."""
    path = tmp_path_factory.mktemp("whole") / "map.npy"
    assert embed(table, "--ranks", 1, *LONG, "--out", path) == 0
    return path.read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_run_writes_its_map_and_can_be_resumed(tmp_path, table, whole, number, code):
    arguments = (table, *LONG, "--checkpoint", tmp_path / "run.eqc", "--out", tmp_path / "map.npy")
    process = start(*arguments, "--ranks", 2)
    wait_for_iteration(process, 100)
    process.send_signal(number)
    shown, errors = process.communicate()
    assert process.returncode == code, errors
    assert "stopping at the next report; Ctrl-C again ends the ranks at once" in errors
    assert "interrupted at iteration" in shown and str(tmp_path / "map.npy") in shown
    assert (tmp_path / "map.npy").read_bytes() != whole
    assert embed(*arguments, "--ranks", 3, "--resume") == 0
    assert (tmp_path / "map.npy").read_bytes() == whole


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the ranks in /proc")
@pytest.mark.parametrize("number", [0, 1])  # rank 0 hosts the store through which the others learn of failures
def test_killed_rank_ends_the_run_which_can_be_resumed(tmp_path, table, whole, number):
    arguments = (table, *LONG, "--checkpoint", tmp_path / "run.eqc", "--out", tmp_path / "map.npy")
    process = start(*arguments, "--ranks", 2)
    wait_for_iteration(process, 100)
    ranks = children(process.pid)
    victim = next(pid for pid in ranks if rank_of(pid) == number)
    os.kill(victim, signal.SIGKILL)
    errors = process.communicate()[1]
    assert process.returncode == 2
    assert (
        errors.splitlines()[-1].startswith(f"equipoise: error: rank {number} (host ") and "killed by SIGKILL" in errors
    )
    assert not any(map(is_running, ranks))
    assert names(tmp_path) == ["run.eqc", "run.eqc.lock"] or names(tmp_path) == ["run.eqc"]
    assert embed(*arguments, "--ranks", 1, "--resume") == 0
    assert (tmp_path / "map.npy").read_bytes() == whole


def test_interrupt_before_the_first_map(table):
    process = start(table, *LONG, "--ranks", 2)
    assert process.stdout.readline().startswith("digits: ")
    process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode == 130 and "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits", "--ranks", 0), "--ranks 0 must be at least 1"),
        (
            ("digits", "--ranks", 2, "--standardize"),
            "--standardize needs the whole table, but --ranks",
        ),
        (("digits", "--ranks", 2, "--save", "m.eq"), "--save needs the whole table"),
        (("digits", "--ranks", 2, "--metric", "mixed"), "but --ranks read it in blocks; omit --ranks, or choose the"),
        (
            ("digits", "--ranks", 2, "--missing", "median"),
            "--missing needs the whole table, but --ranks read it in blocks; omit one of them",
        ),
        (("-", "--ranks", 2), "--ranks cannot read standard input, as every rank reads a part"),
        (("missing.npy", "--ranks", 2), "'missing.npy' is neither a file nor a bundled data set"),
        (("digits", "--ranks", 2, "--method", "mds"), "method must be a method of attraction and repulsion"),
        (("digits", "--ranks", 2, "--geometry", "torus"), "is not supported over ranks"),
        (("digits", "--ranks", 2, "--out", "map.zarr", "--plot", "png"), "is written in blocks, without plots"),
        (("digits", "--ranks", 2, "--resume"), "--resume needs a checkpoint"),
    ],
)
def test_refused_before_ranks_start(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert embed(*arguments) == 2
    assert message in one_line_error(capsys)
    assert names(tmp_path) == []


def test_error_of_a_rank_is_one_line(tmp_path, capfd):
    X = load("digits").X.copy()
    X[1500, 3] = np.nan
    np.save(tmp_path / "X.npy", X)
    assert embed(tmp_path / "X.npy", "--ranks", 2, *SMALL) == 2
    message = one_line_error(capfd)
    assert "has the value nan in row 1500, column 3; fill or remove missing values" in message
    assert "equipoise: error: rank 1 (host " in message

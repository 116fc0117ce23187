"""The command line as a process: pipes, Ctrl-C, SIGKILL, and resuming from a checkpoint."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from support.command_line import names, read_csv

from equipoise import TSNE, data

RUN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also if the shell ignores SIGINT
from equipoise.cli import main
sys.exit(main(sys.argv[1:]))
"""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def command(*arguments):
    return [sys.executable, "-c", RUN, *map(str, arguments)]


def start(*arguments):
    return subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for one process")
@pytest.mark.parametrize("number, code, word", [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_ctrl_c_and_sigterm_write_the_map_so_far(tmp_path, number, code, word):
    with start("embed", "digits", "--iterations", 100_000, "--checkpoint", tmp_path / "run", "--out", tmp_path) as run:
        try:
            for line in run.stdout:
                if line.startswith("iteration   100"):
                    break
            run.send_signal(getattr(signal, number))
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == code and "Traceback" not in err
    assert f"{word} at iteration" in out
    assert len(read_csv(tmp_path / "digits.csv")[1]) == 1797
    assert names(tmp_path) == ["digits.csv", "digits.png", "run"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_killed_and_resumed_run_gives_the_same_bytes(tmp_path):
    checkpoint = tmp_path / "run.eqc"
    words = ("embed", "digits", "--n-iter", 200, "--plot", "none", "--checkpoint", checkpoint, "--out")
    with start(*words, tmp_path / "killed") as run:
        for line in run.stdout:
            if line.startswith("iteration   150"):
                break
        run.kill()
    assert run.returncode == -signal.SIGKILL and names(tmp_path) == ["run.eqc", "run.eqc.lock"]
    resumed = subprocess.run(command(*words, tmp_path, "--resume"), env=ENVIRONMENT, capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    iterations = [int(line.split()[1]) for line in resumed.stdout.splitlines() if line.startswith("iteration")]
    assert min(iterations) >= 100 and iterations[-1] == 200
    assert names(tmp_path) == ["digits.csv", "run.eqc"]
    rows = read_csv(tmp_path / "digits.csv")[1]
    uninterrupted = TSNE(n_iter=200, random_state=0, n_jobs=1).fit_transform(data.load("digits").X)
    np.testing.assert_array_equal(np.array([row[:2] for row in rows], dtype=np.float32), uninterrupted)


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["embed"], 2)], ids=["version", "error"])
def test_python_m_equipoise_is_the_command(words, code):
    done = subprocess.run([sys.executable, "-m", "equipoise", *words], env=ENVIRONMENT, capture_output=True, text=True)
    command_line = subprocess.run(command(*words), env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == command_line.returncode == code
    assert (done.stdout, done.stderr) == (command_line.stdout, command_line.stderr)
    assert "equipoise" in done.stdout + done.stderr


def test_embed_reads_stdin_and_writes_only_the_map_to_stdout(tmp_path):
    """Standard output contains only the map; the report goes to standard error."""
    X = data.load("iris").X
    table = "a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in X) + "\n"
    words = command("embed", "-", "--n-iter", 50, "--out", "-")
    done = subprocess.run(words, input=table, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0
    header, *rows = (line.split(",") for line in done.stdout.splitlines())
    expected = TSNE(n_iter=50, random_state=0).fit_transform(X)
    assert header == ["y1", "y2"]
    np.testing.assert_array_equal(np.array(rows, dtype=np.float32), expected)
    first, *report = done.stderr.splitlines()
    assert first == "stdin: 150 rows, 4 columns; TSNE, seed 0"
    assert any(line.startswith("iteration     0 of 50") for line in report)
    assert "neighbours kept" in done.stderr


pipes = pytest.mark.skipif(sys.platform == "win32", reason="Windows reports closed pipes differently")


@pipes
@pytest.mark.parametrize("words", [["data"], ["--help"], ["embed", "--help"], ["embed", "iris", "--out", "-"]], ids=str)
def test_closed_pipe_exits_quietly(words):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command(*words), stdout=write, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
    os.close(write)
    assert done.returncode == (0 if "--help" in words else 141)  # argparse ignores errors when it prints help
    assert "Error" not in done.stderr and "equipoise:" not in done.stderr


@pipes
def test_full_or_closed_standard_streams_do_not_print_tracebacks():
    with open("/dev/full", "w") as full:
        done = subprocess.run(command("data"), stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
        assert (done.returncode, done.stderr) == (2, "equipoise: error: [Errno 28] No space left on device\n")
        done = subprocess.run(command("data", "nothing"), stderr=full, stdout=subprocess.PIPE, env=ENVIRONMENT)
        assert (done.returncode, done.stdout) == (2, b"")
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command("data")], stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert (closed.returncode, closed.stderr) == (0, b"")


@pipes
def test_two_commands_on_one_checkpoint_are_refused(tmp_path):
    words = ("embed", "digits", "--iterations", 100_000, "--plot", "none", "--checkpoint", tmp_path / "run", "--out")
    with start(*words, tmp_path / "first") as run:
        try:
            for line in run.stdout:
                if line.startswith("iteration"):
                    break
            run.send_signal(signal.SIGSTOP)  # it neither ends nor converges before the second command begins
            assert os.WIFSTOPPED(os.waitpid(run.pid, os.WUNTRACED)[1])
            second = subprocess.run(command(*words, tmp_path / "2"), env=ENVIRONMENT, capture_output=True, text=True)
        finally:
            run.kill()
    assert second.returncode == 2 and f"run' is in use by process {run.pid} on" in second.stderr


def test_full_disk_is_an_error_that_names_the_file(tmp_path):
    """A limit on the size of files stands for a full disk."""
    resource = pytest.importorskip("resource")
    words = command("embed", "iris", "--n-iter", 20, "--plot", "none", "--save", tmp_path / "a.eqz", "--out", tmp_path)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))  # noqa: E731  # above the map, below the model
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 2 and done.stderr.endswith(f"File too large: '{tmp_path / 'a.eqz'}'\n")
    assert names(tmp_path) == ["iris.csv"]

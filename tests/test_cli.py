import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imread

import equipoise
from equipoise import cli, data
from equipoise.cli import main

METHODS = sorted(cli.METHODS)


def read_csv(path):
    header, *rows = (line.split(",") for line in path.read_text().splitlines())
    return header, rows


def embed(*arguments):
    return main(["embed", *map(str, arguments)])


def one_line_error(capsys):
    """The message on stderr: one line, no traceback."""
    message = capsys.readouterr().err
    assert message.startswith("equipoise: error: ") and message.count("\n") == 1, message
    return message


def test_embed_writes_the_map_and_says_how_good_it_is(tmp_path, capsys):
    assert embed("iris", "--out", tmp_path) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iris.csv", "iris.png"]

    header, rows = read_csv(tmp_path / "iris.csv")
    iris = data.load("iris")
    assert header == ["y1", "y2", "class"]
    assert [row[2] for row in rows] == [iris.classes[label] for label in iris.labels]
    expected = equipoise.TSNE(random_state=0).fit_transform(iris.X)
    np.testing.assert_allclose(np.array([row[:2] for row in rows], dtype=float), expected, rtol=1e-5)

    image = imread(tmp_path / "iris.png")[..., :3]
    assert min(image.shape[:2]) > 500
    assert len(np.unique(image.reshape(-1, 3).round(1), axis=0)) > 3

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "iris: 150 rows, 4 columns; TSNE, seed 0"
    assert any(line.startswith("iteration   250 of 300   loss ") for line in lines)
    report = {line[:20].strip(): line[20:] for line in lines}
    assert 0 < float(report["loss"].split()[0]) < 0.3
    assert 60 < float(report["neighbours kept"].split("%")[0]) <= 100
    assert report["neighbours kept"].endswith("of the 10 nearest")
    assert 0 <= float(report["1-NN class error"].split("%")[0]) < 10
    assert "iris.csv" in report["wrote"] and "iris.png" in report["wrote"]


@pytest.mark.filterwarnings("ignore:the neighbour graph falls into 2 components")
@pytest.mark.parametrize("method", METHODS)
def test_every_method(method, tmp_path, capsys):
    closed = issubclass(cli.METHODS[method], equipoise.methods.ClassicalEmbedding)
    assert embed("iris", "--method", method, *([] if closed else ["--iterations", 20]), "--out", tmp_path) == 0
    header, rows = read_csv(tmp_path / "iris.csv")
    d = 3 if method == "sphericalsne" else 2
    assert header == [*(f"y{c + 1}" for c in range(d)), "class"] and len(rows) == 150
    assert np.isfinite(np.array([row[:d] for row in rows], dtype=float)).all()
    assert f"; {cli.METHODS[method].__name__}, seed 0" in capsys.readouterr().out


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line_each(tmp_path, capsys):
    assert embed("iris", "--method", "isomap", "--out", tmp_path) == 0
    message = capsys.readouterr().err
    assert message.startswith("equipoise: warning: the neighbour graph falls into 2 components")
    assert message.count("\n") == 1


@pytest.mark.parametrize("d", [1, 3, 4])
def test_any_dimension_of_the_map(d, tmp_path):
    assert embed("iris", "--components", d, "--iterations", 10, "--out", tmp_path) == 0
    header, _ = read_csv(tmp_path / "iris.csv")
    assert header == [*(f"y{c + 1}" for c in range(d)), "class"]
    assert (tmp_path / "iris.png").stat().st_size > 10_000


def test_same_seed_same_files_other_seed_another_map(tmp_path):
    contents = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        folder = tmp_path / name
        folder.mkdir()
        assert embed("iris", "--seed", seed, "--iterations", 100, "--out", folder) == 0
        contents.append((folder / "iris.csv").read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_npy_table(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    np.save(tmp_path / "mine.npy", X)
    assert embed(tmp_path / "mine.npy", "--perplexity", 5, "--iterations", 50, "--out", tmp_path) == 0
    header, rows = read_csv(tmp_path / "mine-map.csv")  # mine.csv may be where the table came from
    assert header == ["y1", "y2"] and len(rows) == 40
    text = capsys.readouterr().out
    assert text.startswith("mine: 40 rows, 5 columns")
    assert "neighbours kept" in text and "class" not in text


def test_a_few_rows_are_judged_by_fewer_neighbours(tmp_path, capsys):
    np.save(tmp_path / "few.npy", np.arange(12.0).reshape(6, 2) ** 2)
    assert embed(tmp_path / "few.npy", "--iterations", 10, "--out", tmp_path) == 0
    assert "of the 5 nearest" in capsys.readouterr().out


def test_an_existing_map_is_replaced(tmp_path):
    (tmp_path / "iris.csv").write_text("old")
    assert embed("iris", "--iterations", 5, "--out", tmp_path) == 0
    assert len(read_csv(tmp_path / "iris.csv")[1]) == 150


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "'nothing' is neither a .npy file nor a name that `equipoise data` lists"),
        (["iris", "--engine", "warp"], "engine must be one of 'auto', 'reference', 'exact', 'grid', 'sampled', got"),
        (["iris", "--perplexity", "200"], "perplexity=200 is too large for n_samples=150"),
        (["iris", "--perplexity", "0"], "perplexity must be at least 1, got 0"),
        (["iris", "--components", "9"], "n_components=9 is too large for n_features=4"),
        (["iris", "--components", "0"], "n_components must be"),
        (["iris", "--iterations", "-1"], "n_iter must not be negative, got -1"),
        (["iris", "--method", "pca", "--iterations", "5"], "pca has no n_iter; see equipoise embed --help"),
        (["iris", "--method", "umap", "--perplexity", "5"], "umap has no perplexity; see equipoise embed --help"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, message, tmp_path, capsys):
    assert embed(*arguments, "--out", tmp_path) == 2
    assert message in one_line_error(capsys)
    assert list(tmp_path.iterdir()) == []


def test_missing_output_folder(tmp_path, capsys):
    assert embed("iris", "--out", tmp_path / "missing") == 2
    assert "missing' does not exist" in one_line_error(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (None, "No such file"),
        (np.zeros(7), "holds an array of shape (7,); a table (rows, columns) is needed"),
        (np.array([[1.0, np.nan]] * 3), "X contains NaN at row 0, column 1"),
        (np.array([[{}, {}]] * 3, dtype=object), "allow_pickle=False"),
    ],
    ids=["missing", "flat", "nan", "objects"],
)
def test_bad_npy(array, message, tmp_path, capsys):
    path, out = tmp_path / "mine.npy", tmp_path / "out"
    out.mkdir()
    if array is not None:
        np.save(path, array, allow_pickle=True)
    assert embed(path, "--out", out) == 2
    assert message in one_line_error(capsys)
    assert list(out.iterdir()) == []


def test_a_file_that_cannot_be_written_leaves_no_part_behind(tmp_path, capsys):
    (tmp_path / "iris.csv").mkdir()  # in the way
    assert embed("iris", "--iterations", 5, "--out", tmp_path) == 2
    one_line_error(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["iris.csv"]


@pytest.mark.parametrize("arguments", [[], ["fly"], ["embed"], ["embed", "iris", "--method", "no"]])
def test_a_wrong_command_line_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: equipoise" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"equipoise {equipoise.__version__}\n"


def test_data_lists_what_embed_takes(capsys):
    assert main(["data"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(data.DATASETS)
    for line, name in zip(lines, data.DATASETS, strict=True):
        n, D = data.load(name).X.shape
        assert f"{n:,} " in line
        assert f" {D} " in line or "8 × 8" in line


def test_interrupt_writes_the_map_so_far(tmp_path, monkeypatch, capsys):
    def interrupt(self, iteration, loss, Y):
        if iteration == 100:
            raise KeyboardInterrupt

    monkeypatch.setattr(cli._Progress, "__call__", interrupt)
    assert embed("iris", "--out", tmp_path) == 130
    expected = equipoise.TSNE(random_state=0).problem(data.load("iris").X)
    expected.optimize(callbacks=[lambda iteration, loss, Y: iteration == 100])
    rows = np.array([row[:2] for row in read_csv(tmp_path / "iris.csv")[1]], dtype=float)
    np.testing.assert_allclose(rows, expected.Y, rtol=1e-5)
    assert (tmp_path / "iris.png").stat().st_size > 10_000
    assert "interrupted at iteration 100; the map so far is in" in capsys.readouterr().out


RUN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the shell has switched it off
from equipoise.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c(tmp_path):
    command = [sys.executable, "-c", RUN, "embed", "digits", "--iterations", "100000", "--out", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        try:
            for line in run.stdout:
                if line.startswith("iteration    50"):
                    break
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 130 and "Traceback" not in err
    assert "interrupted at iteration" in out
    assert len(read_csv(tmp_path / "digits.csv")[1]) == 1797
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits.csv", "digits.png"]

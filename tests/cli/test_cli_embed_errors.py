"""Invalid input, invalid options and interrupts of `equipoise embed`: one line, and no partial files."""

import numpy as np
import pytest
from support.command_line import embed, names, one_line_error, read_csv

import equipoise
from equipoise import data
from equipoise.cli.console import Console


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "'nothing' is neither a file nor a bundled data set; run `equipoise data` for a list"),
        (["digit"], "did you mean digits?"),
        (
            ["iris", "--engine", "warp"],
            "unknown engine 'warp'; choose from 'auto', 'reference', 'exact', 'grid', 'sampled', 'torch'",
        ),
        (["table.csv", "--engine", "exat"], "unknown engine 'exat'; did you mean exact?"),
        (["table.csv", "--metric", "cosin"], "unknown metric 'cosin'; did you mean cosine?"),
        (["table.csv", "--init", "pcca"], "unknown init 'pcca'; did you mean pca?"),
        (["table.csv", "--affinity", "gausian"], "unknown affinity 'gausian'; did you mean gaussian?"),
        (["table.csv", "--method", "mds", "--stress", "metrik"], "unknown stress 'metrik'; did you mean metric?"),
        (["table.csv", "--method", "lle", "--engine", "torhc"], "unknown engine 'torhc'; did you mean torch?"),
        (["iris", "--perplexity", "200"], "perplexity=200 is too large for n_samples=150"),
        (["iris", "--perplexity", "0"], "perplexity must be at least 1, got 0"),
        (["iris", "--perplexity", "ten"], "perplexity must be a number, several numbers"),
        (["iris", "--components", "9"], "n_components=9 is too large for n_features=4"),
        (["iris", "--components", "0"], "n_components must be"),
        (["iris", "--iterations", "-1"], "n_iter must not be negative, got -1"),
        (["iris", "--seed", "x"], "seed"),
        (
            ["iris", "--method", "pca", "--iterations", "5"],
            "pca is computed in closed form, without iterations; omit --n-iter (--iterations), or add --solver flow",
        ),
        (
            ["iris", "--method", "pca", "--checkpoint", "c"],
            "pca is computed in closed form and has no checkpoints",
        ),
        (["iris", "--resume"], "--resume needs a checkpoint; add --checkpoint FILE"),
        (["iris", "--label", "species"], "--label applies to files only; omit it for the bundled data set iris"),
        (["iris", "--pca", "5"], "pca=5 is out of range for a table of shape (150, 4)"),
    ],
)
def test_invalid_input_prints_one_line_and_writes_no_files(arguments, message, tmp_path, capsys):
    assert embed(*arguments, "--out", tmp_path) == 2
    assert message in one_line_error(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--method", "umap", "--perplexity", "5"],
            "umap has no parameter perplexity; see equipoise embed --method umap --help",
        ),
        (["--method", "no"], "invalid choice: 'no'"),
        (["--components", "two"], "argument --n-components/--components: 'two' is not an integer"),
        (["--dof", "one"], "argument --dof: 'one' is not a number"),
        (["--n-jobs", "all"], "argument --n-jobs: 'all' is not an integer"),
        (
            ["--method", "symmetricsne", "--kernel", "print(1)"],
            "cannot parse 'print(1)'; choose from Gaussian, StudentT",
        ),
        (["--method", "symmetricsne", "--kernel", "StudentT(dof=-1)"], "'StudentT(dof=-1)' is invalid: dof must be"),
        (["--method", "symmetricsne", "--kernel", "StudentT(__import__('os'))"], "choose from"),
        (
            ["--init", "missing.npy"],
            "cannot read 'missing.npy': No such file or directory; the file must contain an array saved by numpy.save",
        ),
        (["--plot", "pdf"], "unknown format 'pdf'; choose from png, svg, html"),
        (["--format", "doc"], "invalid choice: 'doc'"),
        (["--perplexty", "5"], "unknown argument: --perplexty 5; did you mean --perplexity?"),
        (["--n-epochs", "5"], "unknown argument: --n-epochs 5; use --n-iter"),
        (["--standardise"], "unknown argument: --standardise; did you mean --standardize?"),
        (["--colour=x"], "unknown argument: --colour=x ("),
        (["--colour=x", "--shape=y"], "unknown arguments: --colour=x --shape=y ("),
        (["--method", "tsen"], "invalid choice: 'tsen'; did you mean tsne?"),
        (["--method", "UMAP"], "invalid choice: 'UMAP'; did you mean umap?"),
    ],
)
def test_invalid_option_prints_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        embed("iris", *arguments)
    assert stop.value.code == 2
    assert message in one_line_error(capsys)


def test_invalid_outputs_are_rejected_before_fitting(tmp_path, capsys):
    (tmp_path / "iris.csv").mkdir()  # blocks the output file
    (tmp_path / "file").write_text("mine")
    for out, more, message in (
        (tmp_path, [], "iris.csv' is a folder; choose another name for the file"),
        (tmp_path / "file", [], "file' is a file; --out takes a folder, or the file of the map"),
        (tmp_path / "file" / "below", [], "cannot write 'iris.csv' to '"),
        (tmp_path / "x.png", [], "--out takes a folder, the file of the map or a page; for a plot use --plot png"),
        (tmp_path / "x.csv", ["--format", "npy"], "--format npy contradicts the file name 'x.csv'; omit --format"),
        (
            tmp_path / "x.foo",
            [],
            "x.foo: unknown format .foo; choose from .csv, .tsv, .parquet",
        ),
        ("-", ["--plot", "png"], "--plot needs --out FOLDER or --out FILE, not --out -"),
    ):
        assert embed("iris", "--out", out, *more) == 2
        assert message in one_line_error(capsys)
    assert names(tmp_path) == ["file", "iris.csv"] and (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (None, "neither a file nor a bundled data set"),
        (np.zeros(7), "(7,)"),
        (np.array([[1.0, np.nan]] * 3), "NaN"),
        (np.array([[{}, {}]] * 3, dtype=object), "it contains Python objects; save a numeric table"),
    ],
    ids=["missing", "flat", "nan", "objects"],
)
def test_invalid_npy_files_are_rejected(array, message, tmp_path, capsys):
    path, out = tmp_path / "mine.npy", tmp_path / "out"
    if array is not None:
        np.save(path, array, allow_pickle=True)
    assert embed(path, "--out", out) == 2
    assert message in one_line_error(capsys)
    assert not out.exists()


def test_folder_as_input_file_is_an_error(tmp_path, capsys):
    (tmp_path / "table.csv").mkdir()
    assert embed(tmp_path / "table.csv") == 2
    assert "table.csv" in one_line_error(capsys)


def test_error_in_plotting_keeps_the_map_file(tmp_path, monkeypatch, capsys):
    def fail(*arguments, **settings):
        raise RuntimeError("no ink")

    monkeypatch.setattr("equipoise.cli.write_map.render", fail)
    assert embed("circle", "--iterations", 5, "--out", tmp_path) == 2
    assert "no ink" in one_line_error(capsys)
    assert names(tmp_path) == ["circle.csv"] and len(read_csv(tmp_path / "circle.csv")[1]) == 100


def test_debug_prints_the_traceback(capsys):
    assert embed("iris", "--perplexity", 0, "--debug") == 2
    message = capsys.readouterr().err
    assert message.startswith("Traceback") and message.splitlines()[-1].startswith("equipoise: error: perplexity")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not enough memory: MemoryError"),
        ("Unable to allocate 3 GiB", "not enough memory: Unable to allocate 3 GiB"),
        ("not enough memory to read x", "not enough memory to read x"),
        ("GPU out of memory: TSNE", "GPU out of memory: TSNE"),
    ],
)
def test_memory_error_says_once_that_memory_is_short(text, message, monkeypatch, capsys):
    def fail(*arguments, **settings):
        raise MemoryError(*([text] if text else []))

    monkeypatch.setattr(equipoise.TSNE, "_build", fail)
    assert embed("iris", "--out", "-") == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"equipoise: error: {message}"


def test_interrupt_writes_the_map_so_far(tmp_path, monkeypatch, capsys):
    def interrupt(self, iteration, loss, Y):
        if iteration == 100:
            raise KeyboardInterrupt

    monkeypatch.setattr(Console, "__call__", interrupt)
    assert embed("iris", "--out", tmp_path) == 130
    expected = equipoise.TSNE(random_state=0).problem(data.load("iris").X)
    expected.optimize(callbacks=[lambda iteration, loss, Y: iteration == 100])
    rows = np.array([row[:2] for row in read_csv(tmp_path / "iris.csv")[1]], dtype=float)
    np.testing.assert_allclose(rows, expected.Y, rtol=1e-5)
    assert (tmp_path / "iris.png").stat().st_size > 10_000
    assert "interrupted at iteration 100; the map so far is in" in capsys.readouterr().out


def test_interrupt_before_the_first_map_writes_nothing(tmp_path, monkeypatch, capsys):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(equipoise.TSNE, "_build", interrupt)
    assert embed("iris", "--out", tmp_path) == 130
    assert capsys.readouterr().err == "equipoise: interrupted before the first map\n"
    assert list(tmp_path.iterdir()) == []

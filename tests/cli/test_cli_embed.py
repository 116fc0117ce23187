"""`equipoise embed`: the map, the figure, the printed report, and options."""

import re

import numpy as np
import pytest
from matplotlib.image import imread
from support.command_line import embed, names, one_line_error, read_csv

import equipoise
from equipoise import cli, data
from equipoise.affinities import FixedWidth
from equipoise.cli import main
from equipoise.cli.method_options import parameter_texts

METHODS = sorted(cli.METHODS)
QUICK = ("--iterations", 20, "--plot", "none")


def test_embed_writes_map_and_figure_and_prints_quality(tmp_path, capsys):
    assert embed("iris", "--out", tmp_path) == 0
    assert names(tmp_path) == ["iris.csv", "iris.png"]

    header, rows = read_csv(tmp_path / "iris.csv")
    iris = data.load("iris")
    assert header == ["y1", "y2", "class"]
    assert [row[2] for row in rows] == [iris.classes[label] for label in iris.labels]
    expected = equipoise.TSNE(random_state=0).fit_transform(iris.X)
    np.testing.assert_array_equal(np.array([row[:2] for row in rows], dtype=np.float32), expected)

    image = imread(tmp_path / "iris.png")[..., :3]
    assert max(image.shape[:2]) > 1000
    assert len(np.unique(image.reshape(-1, 3).round(1), axis=0)) > 3

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "iris: 150 rows, 4 columns; TSNE, seed 0"
    assert any(line.startswith("iteration   250 of 300   loss ") for line in lines)
    report = {line[:20].strip(): line[20:] for line in lines}
    assert 0 < float(report["loss"].split()[0]) < 0.3
    assert 60 < float(report["neighbours kept"].split("%")[0]) <= 100
    assert report["neighbours kept"].endswith("of the 10 nearest")
    assert 0 <= float(report["1-NN class error"].split("%")[0]) < 10
    assert report["wrote"] == f"{tmp_path / 'iris.csv'} and {tmp_path / 'iris.png'}"


def test_embed_says_what_further_iterations_would_gain(tmp_path, capsys):
    quick = ("iris", "--plot", "none", "--out", tmp_path)
    assert embed(*quick, "--n-iter", 200) == 0
    text = capsys.readouterr().out
    line = re.search(r"remaining gain      up to about (\d+)% of the loss; (.*)\n", text)
    assert 5 < int(line[1]) < 50 and line[2] == "--n-iter auto runs until it is below 1%"
    assert "iteration   150 of 200   loss " in text
    assert embed(*quick, "--n-iter", "auto", "--save", tmp_path / "iris.eq") == 0
    text = capsys.readouterr().out
    assert "remaining gain" not in text and "iteration   150   loss " in text
    assert equipoise.load(tmp_path / "iris.eq").remaining_gain_ < 0.01
    assert embed(*quick, "--n-iter", 20) == 0
    assert "remaining gain      unknown after so few iterations; --n-iter auto" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("mds", "--n-iter", 5), "--n-iter auto runs until ten iterations lower the loss by less than 1e-05 of it"),
        (("mds", "--init", "random", "--tol", 0.3), "a --tol below 0.3 continues beyond it"),
        (("mds", "--init", "random", "--tol", 0.3, "--n-iter", "auto"), "a --tol below 0.3 continues beyond it"),
    ],
)
def test_advice_on_further_iterations_holds_for_the_method(words, advice, tmp_path, capsys):
    assert embed("iris", "--plot", "none", "--out", tmp_path, "--method", *words) == 0
    line = re.search(r"remaining gain      up to about \d+% of the loss; (.*)\n", capsys.readouterr().out)
    assert line[1].startswith(advice)


# Printed instead of a loss that depends on the unit of the data: E = ‖B − YYᵀ‖² grows with its fourth power.
MEASURES = {
    "pca": "variance kept ",
    "classicalmds": "Gram matrix kept ",
    "isomap": "Gram matrix kept ",
    "mds": "stress-1 ",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
def test_embed_runs_every_method(method, tmp_path, capsys):
    closed = issubclass(cli.METHODS[method], equipoise.methods.ClassicalEmbedding)
    iterations = () if closed else ("--iterations", 20)
    assert embed("iris", "--method", method, *iterations, "--plot", "none", "--out", tmp_path) == 0
    header, rows = read_csv(tmp_path / "iris.csv")
    d = 3 if method == "sphericalsne" else 2
    assert header == [*(f"y{c + 1}" for c in range(d)), "class"] and len(rows) == 150
    assert np.isfinite(np.array([row[:d] for row in rows], dtype=float)).all()
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == f"iris: 150 rows, 4 columns; {cli.METHODS[method].__name__}, seed 0"
    assert sum(line.startswith("iteration") for line in lines) <= (0 if closed else 4 if method == "dkpca" else 2)
    (result,) = (line for line in lines if line.startswith(MEASURES.get(method, "loss ")))
    value = float(result[20:].split()[0].rstrip("%"))
    assert 0 <= value <= (1 if method == "mds" else 100 if method in MEASURES else np.inf)
    assert (" in closed form, " in result) == closed


def test_gram_matrix_share_matches_squared_variances(tmp_path, capsys):
    """The eigenvalues of B = XXᵀ are proportional to the variances, so ‖B‖² is a sum of squared variances."""
    assert embed("iris", "--method", "classicalmds", "--plot", "none", "--out", tmp_path) == 0
    share = float(re.search(r"Gram matrix kept +([\d.]+)%", capsys.readouterr().out)[1])
    variance = np.linalg.eigvalsh(np.cov(data.load("iris").X.T)) ** 2
    assert share == pytest.approx(100 * variance[-2:].sum() / variance.sum(), abs=0.051)


def test_pca_flow_prints_its_loss(tmp_path, capsys):
    assert embed("circle", "--method", "pca", "--solver", "flow", "--plot", "none", "--out", tmp_path) == 0
    text = capsys.readouterr().out
    assert "iteration     0 of 10000   loss " in text and re.search(
        r"variance kept +100\.0% after \d+ iterations", text
    )


@pytest.mark.filterwarnings("default")
def test_warnings_are_printed_on_one_line(tmp_path, capsys):
    assert embed("iris", "--method", "isomap", "--out", tmp_path, "--plot", "none") == 0
    message = capsys.readouterr().err
    assert message.startswith("equipoise: warning: the neighbour graph has 2 components")
    assert message.count("\n") == 1


@pytest.mark.parametrize("d", [1, 3, 4])
def test_components_sets_the_map_dimension(d, tmp_path):
    assert embed("iris", "--components", d, "--iterations", 10, "--out", tmp_path) == 0
    header, _ = read_csv(tmp_path / "iris.csv")
    assert header == [*(f"y{c + 1}" for c in range(d)), "class"]
    assert (tmp_path / "iris.png").stat().st_size > 10_000


def test_same_seed_gives_same_files_and_other_seed_another_map(tmp_path):
    contents = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert embed("iris", "--seed", seed, *QUICK, "--plot", "svg", "--out", tmp_path / name) == 0
        contents.append([path.read_bytes() for path in sorted((tmp_path / name).iterdir())])
    assert contents[0] == contents[1] and len(contents[0]) == 2
    assert contents[0][0] != contents[2][0]


def test_embed_reads_npy_tables(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    np.save(tmp_path / "mine.npy", X)
    assert embed(tmp_path / "mine.npy", "--perplexity", 5, "--iterations", 50, "--out", tmp_path) == 0
    header, rows = read_csv(tmp_path / "mine-map.csv")  # mine.csv might be the source of the table
    assert header == ["y1", "y2"] and len(rows) == 40
    text = capsys.readouterr().out
    assert text.startswith("mine: 40 rows, 5 columns")
    assert "neighbours kept" in text and "class" not in text


def test_columns_label_id_and_preparation_match_the_library(tmp_path):
    """Columns are chosen and prepared as in the library; the remaining columns are copied to the output."""
    rng = np.random.default_rng(0)
    X = rng.poisson(5, size=(30, 3))
    lines = [f"row {i},{a},{b},{c},{'ab'[i % 2]},{i % 3}" for i, (a, b, c) in enumerate(X)]
    (tmp_path / "t.csv").write_text("\n".join(["name,a,b,c,kind,batch", *lines]) + "\n")
    chosen = ["--columns", "a, b,c", "--label", "kind", "--id", "name", "--log1p", "--standardize", "--pca", 2]
    assert embed(tmp_path / "t.csv", *chosen, *QUICK, "--out", tmp_path / "m.csv") == 0
    header, rows = read_csv(tmp_path / "m.csv")
    assert header == ["id", "y1", "y2", "kind", "batch"]
    assert rows[4][0] == "row 4" and rows[4][3:] == ["a", "1"]
    dataset = data.Dataset("t", X.astype(float), None, ())
    prepared = data.prepare(dataset, standardize=True, log1p=True, pca=2).X
    expected = equipoise.TSNE(n_iter=20, random_state=0).fit_transform(prepared)
    np.testing.assert_array_equal(np.array([row[1:3] for row in rows], dtype=np.float32), expected)


def test_parameters_of_every_type_reach_the_method(tmp_path):
    """Numbers, words, lists of numbers, arrays in files and objects are parsed for the library."""
    X = data.load("iris").X
    start = np.random.default_rng(0).normal(size=(150, 2))
    np.save(tmp_path / "start.npy", start)
    words = ["--perplexity", "5,30", "--affinity", "gaussian", "--init", tmp_path / "start.npy"]
    words += ["--kernel", "StudentT(dof=0.5)", "--divergence", "Alpha(-0.5)", "--optimizer", "GradientDescent(every=5)"]
    assert embed("iris", "--method", "symmetricsne", *words, *QUICK, "--out", tmp_path / "m.npy") == 0
    expected = equipoise.SymmetricSNE(
        perplexity=[5, 30],
        init=start,
        n_iter=20,
        kernel=equipoise.kernels.StudentT(0.5),
        divergence=equipoise.divergences.Alpha(-0.5),
        optimizer=equipoise.GradientDescent(every=5),
        random_state=0,
    )
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), expected.fit_transform(X))


def test_embed_accepts_precomputed_distances_and_affinities(tmp_path, capsys):
    X = data.load("iris").X[:40]
    D = np.linalg.norm(X[:, None] - X[None], axis=-1)
    np.save(tmp_path / "d.npy", (D + D.T) / 2)
    assert embed(tmp_path / "d.npy", "--metric", "precomputed", *QUICK, "--out", tmp_path) == 0
    assert "of the 10 nearest" in capsys.readouterr().out
    np.save(tmp_path / "p.npy", np.exp(-D) * (D > 0))
    assert embed(tmp_path / "p.npy", "--affinity", "precomputed", *QUICK, "--out", tmp_path) == 0
    assert "neighbours kept     not measured: X contains affinities, not distances" in capsys.readouterr().out
    np.save(tmp_path / "k.npy", np.exp(-D))
    assert embed(tmp_path / "k.npy", "--method", "pca", "--kernel", "precomputed", "--out", tmp_path) == 0
    assert "neighbours kept     not measured: X contains a kernel, not distances" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "method"),
    [
        (["tsne", "--affinity", "FixedWidth(0.8)", *QUICK], equipoise.TSNE(affinity=FixedWidth(0.8), n_iter=20)),
        (["pca", "--kernel", "rbf", "--gamma", "0.1"], equipoise.PCA(kernel="rbf", gamma=0.1)),
        (["pca", "--kernel", "StudentT()", "--gamma", "none"], equipoise.PCA(kernel=equipoise.kernels.StudentT())),
    ],
)
def test_affinities_and_kernels_of_the_data_are_parsed(words, method, tmp_path):
    assert embed("iris", "--method", *words, "--out", tmp_path / "m.npy") == 0
    X = data.load("iris").X
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), method.set_params(random_state=0).fit_transform(X))


def test_few_rows_are_evaluated_with_fewer_neighbours(tmp_path, capsys):
    np.save(tmp_path / "few.npy", np.arange(12.0).reshape(6, 2) ** 2)
    assert embed(tmp_path / "few.npy", "--iterations", 10, "--out", tmp_path) == 0
    assert "of the 5 nearest" in capsys.readouterr().out


def test_existing_map_file_is_replaced(tmp_path):
    (tmp_path / "iris.csv").write_text("old")
    assert embed("iris", *QUICK, "--out", tmp_path) == 0
    assert len(read_csv(tmp_path / "iris.csv")[1]) == 150


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet", "npy"])
def test_all_formats_contain_the_same_map(format, tmp_path):
    assert embed("circle", *QUICK, "--format", format, "--out", tmp_path / "new" / "folder") == 0
    path = tmp_path / "new" / "folder" / f"circle.{format}"
    Y = equipoise.TSNE(n_iter=20, random_state=0).fit_transform(data.load("circle").X)
    read = data.read(path, columns=None if format == "npy" else ["y1", "y2"])
    np.testing.assert_allclose(read.X, Y, rtol=1e-6)
    assert read.extra.keys() == ({"class"} if format != "npy" else set())


def test_out_file_writes_no_figure_unless_plot_is_set(tmp_path):
    assert embed("circle", "--iterations", 5, "--out", tmp_path / "a.tsv") == 0
    assert names(tmp_path) == ["a.tsv"]
    assert embed("circle", "--iterations", 5, "--out", tmp_path / "a.csv", "--plot", "png,svg") == 0
    assert names(tmp_path) == ["a.csv", "a.png", "a.svg", "a.tsv"]
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()


def test_out_folder_may_have_a_dot_in_its_name(tmp_path):
    """A path with a dot is a folder if it exists or ends in a slash."""
    assert embed("circle", "--iterations", 5, "--plot", "none", "--out", f"{tmp_path}/run.1/") == 0
    assert embed("circle", "--iterations", 5, "--plot", "none", "--out", tmp_path / "run.1", "--format", "npy") == 0
    assert names(tmp_path / "run.1") == ["circle.csv", "circle.npy"]


def test_embedding_a_text_column_is_an_error(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b,kind\n1,2,x\n3,4,y\n5,7,x\n")
    assert embed(tmp_path / "t.csv", "--columns", "a,kind", "--out", tmp_path / "m.csv") == 2
    message = one_line_error(capsys)
    assert "t.csv: column 'kind' contains text ('x') and cannot be embedded" in message
    assert "; the numeric columns are 'a', 'b'" in message


def test_report_uses_singular_forms_and_class_names(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,kind\n" + "".join(f"{i * i},whale\n" for i in range(12)))
    words = ("--label", "kind", "--components", 1, "--iterations", 1, "--plot", "none", "--out", tmp_path / "m.csv")
    assert embed(tmp_path / "t.csv", *words) == 0
    text = capsys.readouterr().out
    assert text.startswith("t: 12 rows, 1 column; TSNE") and " after 1 iteration, " in text
    assert "1-NN class error    not measured: all labels are 'whale'" in text


def test_plot_html_writes_a_page(tmp_path):
    pytest.importorskip("bokeh")
    assert embed("circle", "--iterations", 5, "--plot", "html", "--out", tmp_path) == 0
    assert names(tmp_path) == ["circle.csv", "circle.html"]
    assert "circle, TSNE" in (tmp_path / "circle.html").read_text(encoding="utf-8")


def test_help_lists_parameters_of_the_chosen_method(capsys):
    helps = {}
    for method in METHODS:
        with pytest.raises(SystemExit) as stop:
            main(["embed", "--method", method, "--help"])
        assert stop.value.code == 0
        helps[method] = capsys.readouterr().out
        for name in cli.METHODS[method]().get_params():
            assert (f"--{name.replace('_', '-')} " in helps[method]) == (name not in ("callbacks", "verbose")), name
    assert "--perplexity VALUE" in helps["tsne"] and "--perplexity" not in helps["umap"]
    text = " ".join(helps["umap"].split())
    assert "Number of points in a neighbourhood, including its centre" in text and "(default: 15)" in text
    assert 'For fewer points it is 500 if the engine is "negative_sampling"' in text


def test_engine_and_device_reach_the_method(tmp_path, capsys):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    options = ("--engine", "torch", "--device", "cpu", "--deterministic", "no", "--tol", 0.02)
    assert embed("iris", *options, *QUICK, "--save", tmp_path / "iris.eq", "--out", tmp_path) == 0
    method = equipoise.load(tmp_path / "iris.eq")
    given = {"engine": "torch", "device": "cpu", "deterministic": False, "tol": 0.02}
    assert given.items() <= method.get_params().items() and method.engine_ == "torch"
    assert (method.embedding_.shape, method.embedding_.dtype) == ((150, 2), np.float32)
    assert main(["transform", str(tmp_path / "iris.eq"), "iris", "--out", str(tmp_path / "new.csv")]) == 0
    assert len(read_csv(tmp_path / "new.csv")[1]) == 150


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "tpu"), "device must be one of 'auto', 'cpu', 'cuda', got 'tpu'"),
        (("--device", "cuda", "--engine", "grid"), "engine='grid' runs on the CPU"),
        (("--engine", "torch", "--deterministic", "perhaps"), "'perhaps' is not a boolean; use true or false"),
    ],
)
def test_invalid_engine_and_device_are_errors(options, message, tmp_path, capsys):
    try:
        assert embed("iris", *options, *QUICK, "--out", tmp_path) == 2
    except SystemExit as left:  # raised by the parser
        assert left.code == 2
    assert message in one_line_error(capsys)


def test_help_describes_engine_and_device(capsys):
    with pytest.raises(SystemExit):
        embed("--help")
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "--engine WORD",
        '"torch"',
        "--device WORD",
        "--deterministic BOOL Make results byte-identical",
        "--tol X",
    ):
        assert words in text


def test_parameter_texts_omit_numpydoc_types():
    class Method:
        """A method.

        Parameters
        ----------
        perplexity : float or sequence of float, default="auto"
            Effective number of neighbours.
        device : "cpu" or "cuda", optional
            Where it runs; one
            of two.
        n_iter : iterations, at most
        """

    assert parameter_texts(Method) == {
        "perplexity": "Effective number of neighbours.",
        "device": '"cpu" or "cuda". Where it runs; one of two.',
        "n_iter": "iterations, at most",
    }


def test_mds_prints_the_worst_case_with_its_bound_and_takes_a_learning_rate(tmp_path, capsys):
    data = tmp_path / "points.csv"
    np.savetxt(data, np.random.default_rng(0).normal(size=(30, 5)), delimiter=",")
    on_data = (data, "--method", "mds", "--plot", "none", "--out", tmp_path)
    assert embed(*on_data, "--stress", "max", "--iterations", "40") == 0
    line = re.search(r"worst case +([\d.]+) \(every map: at least ([\d.]+)\) after 40 iter", capsys.readouterr().out)
    assert 0 < float(line[2]) < float(line[1])
    assert embed(*on_data, "--solver", "descent", "--learning-rate", "0.02", "--iterations", "5", "--tol", "0") == 0
    assert "after 5 iterations" in capsys.readouterr().out
    assert embed(*on_data, "--learning-rate", "0.02") == 2
    assert 'learning_rate=0.02 is used by solver="descent" only' in one_line_error(capsys)

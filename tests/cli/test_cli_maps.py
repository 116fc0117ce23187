"""The verbs for finished maps and fitted methods: transform, evaluate, compare, sweep, plot."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite
from support.command_line import embed, names, one_line_error, read_csv

import equipoise as eq
from equipoise import data
from equipoise.cli import main
from equipoise.cli.map_files import read_map
from equipoise.cli.pictures import Drawing, with_reference


def run(*arguments):
    return main([*map(str, arguments)])


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """A folder with two maps of iris and the fitted method of the first."""
    folder = tmp_path_factory.mktemp("maps")
    quick = ("--plot", "none", "--n-iter", 100)
    assert embed("iris", *quick, "--out", folder / "tsne.csv", "--save", folder / "tsne.eq") == 0
    assert embed("iris", "--method", "pca", "--out", folder / "pca.csv") == 0
    return folder


def test_transform_matches_the_library(maps, tmp_path, capsys):
    X = data.load("iris").X[::10] + 0.01
    np.save(tmp_path / "new.npy", X)
    assert run("transform", maps / "tsne.eq", tmp_path / "new.npy", "--out", tmp_path) == 0
    assert names(tmp_path) == ["new-map.csv", "new-map.png", "new.npy"]
    Y = np.array(read_csv(tmp_path / "new-map.csv")[1], dtype=np.float32)
    method = eq.TSNE(n_iter=100, random_state=0).fit(data.load("iris").X)
    np.testing.assert_array_equal(Y, method.transform(X))
    assert "new: 15 rows placed among 150; TSNE" in capsys.readouterr().out


def test_transform_prepares_new_rows_like_the_fitted_data(tmp_path):
    """The columns, means, deviations and principal axes are those of the fit; other columns are ignored."""
    X = np.random.default_rng(0).gamma(2.0, size=(60, 4)) * [1, 10, 100, 1000]
    (tmp_path / "old.csv").write_text("a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in X[:40]))
    later = [f"x,{d},,{c},{b},{a}" for a, b, c, d in X[40:].tolist()]
    (tmp_path / "later.csv").write_text("\n".join(["kind,d,gaps,c,b,a", *later]))
    prepared = ("--log1p", "--standardize", "--pca", 3, "--method", "pca")
    assert embed(tmp_path / "old.csv", *prepared, "--save", tmp_path / "m.eq", "--out", tmp_path / "old.npy") == 0
    assert run("transform", tmp_path / "m.eq", tmp_path / "later.csv", "--out", tmp_path / "later.npy") == 0
    L = np.log1p(X)
    Z = (L - L[:40].mean(axis=0)) / L[:40].std(axis=0)
    reference = eq.PCA(n_components=3).fit(Z[:40])
    expected = eq.PCA(n_components=2).fit(reference.embedding_).transform(reference.transform(Z[40:]))
    np.testing.assert_allclose(np.abs(np.load(tmp_path / "later.npy")), np.abs(expected), atol=1e-9)


def test_transform_rejects_invalid_models_and_data(maps, tmp_path, capsys):
    assert run("transform", maps / "tsne.csv", "iris", "--out", tmp_path) == 2
    message = one_line_error(capsys)
    assert "tsne.csv is not a model; models are written by `equipoise embed DATA --save model.eq`" in message
    assert run("transform", tmp_path / "missing.eq", "iris", "--out", tmp_path) == 2
    assert "missing.eq does not exist; models are written by" in one_line_error(capsys)
    assert run("transform", maps / "tsne.eq", "digits", "--out", tmp_path) == 2
    assert "64 features" in one_line_error(capsys)
    assert names(tmp_path) == []


def test_evaluate_prints_the_library_report(maps, tmp_path, capsys):
    out = tmp_path / "new"
    assert run("evaluate", "iris", maps / "tsne.csv", "--k", 10, "--figure", out / "f.png") == 0
    iris = data.load("iris")
    Y = np.array([row[:2] for row in read_csv(maps / "tsne.csv")[1]], dtype=float)
    report = eq.evaluate(iris.X, Y, np.array(iris.classes)[iris.labels], k=10)
    first, _, rest = capsys.readouterr().out.partition("\n\n")
    assert first == "data                iris, unchanged (no --log1p, --standardize or --pca)"
    assert rest == f"{report}\nwrote               {out / 'f.png'}\n" and "k = 10 neighbours" in rest
    assert names(out) == ["f.png"] and (out / "f.png").stat().st_size > 10_000


def test_evaluate_html_writes_a_page(maps, tmp_path, capsys):
    pytest.importorskip("bokeh")
    assert run("evaluate", "iris", maps / "tsne.csv", "--html", tmp_path / "report.html") == 0
    assert capsys.readouterr().out.endswith(f"\nwrote               {tmp_path / 'report.html'}\n")
    assert "trustworthiness" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_evaluate_takes_classes_from_the_map_if_the_data_has_none(maps, tmp_path, capsys):
    np.save(tmp_path / "bare.npy", data.load("iris").X)
    assert run("evaluate", tmp_path / "bare.npy", maps / "tsne.csv") == 0
    assert "nearest of another class" in capsys.readouterr().out


def test_evaluate_requires_the_same_number_of_rows(maps, capsys):
    assert run("evaluate", "circle", maps / "tsne.csv") == 2
    assert "X has 100 points and Y has 150" in one_line_error(capsys)


def test_compare_names_maps_by_their_files(maps, tmp_path, capsys):
    assert run("compare", "iris", maps / "tsne.csv", maps / "pca.csv", "--figure", tmp_path / "f.svg") == 0
    text = capsys.readouterr().out
    assert text.splitlines()[4].split() == ["tsne", "pca"]
    assert text.splitlines()[-1] == f"wrote               {tmp_path / 'f.svg'}"
    assert names(tmp_path) == ["f.svg"]
    other = tmp_path / "tsne.csv"
    other.write_bytes((maps / "tsne.csv").read_bytes())
    assert run("compare", "iris", maps / "tsne.csv", other) == 0
    assert str(other) in capsys.readouterr().out
    assert run("compare", "iris", other, other) == 2
    assert "is listed twice" in one_line_error(capsys)


def test_sweep_matches_the_library(tmp_path, capsys):
    words = ("--perplexity", 20, 5, "--n-iter", 60, "--k", 5, "--seed", 3, "--figure", tmp_path / "f.png")
    assert run("sweep", "three_distances", *words) == 0
    text = capsys.readouterr().out
    three = data.load("three_distances")
    labels = np.array(three.classes)[three.labels]
    result = eq.sweep(eq.TSNE(n_iter=60), three.X, {"perplexity": [20, 5]}, labels, k=5, random_state=3)
    for i, perplexity in enumerate((20, 5)):
        (line,) = (line for line in text.splitlines() if line.startswith(f"perplexity {perplexity} "))
        assert f"{result.scores['neighbours'][i]:.3f}" in line.split()
    assert all(" ".join(sentence.split()) in " ".join(text.split()) for sentence in result.sentences)
    *report, written = text.splitlines()
    assert max(map(len, report)) <= 80 and written.split() == ["wrote", str(tmp_path / "f.png")]
    assert (tmp_path / "f.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "words", [["--perplexity", "5"], [], ["--seed", "1", "2", "--dof", "1", "2"]], ids=["one", "none", "seeds"]
)
def test_sweep_requires_parameters_with_several_values(words, capsys):
    assert run("sweep", "circle", *words) == 2
    assert "pass several values for one or two parameters" in one_line_error(capsys)


@pytest.mark.parametrize("out", ["m.png", "m.svg", "m.html"])
def test_plot_colours_by_any_column_in_every_format(out, maps, tmp_path, capsys):
    if out.endswith("html"):
        pytest.importorskip("bokeh")
    assert run("plot", maps / "tsne.csv", "--color", "y1", "--dark", "--title", "mine", "--out", tmp_path / out) == 0
    assert (tmp_path / out).stat().st_size > 10_000
    assert f"wrote               {tmp_path / out}" in capsys.readouterr().out


def test_plot_colours_by_class_and_writes_to_the_current_folder(maps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn = {}
    monkeypatch.setattr(
        "equipoise.views.plot.plot", lambda Y, color, **more: drawn.update(color=color, **more) or FakeFigure
    )
    assert run("plot", maps / "tsne.csv") == 0
    assert names(tmp_path) == ["tsne-plot.png"] and drawn["title"] == "tsne"
    iris = data.load("iris")
    assert drawn["color"].tolist() == [iris.classes[label] for label in iris.labels]


class FakeFigure:
    """Minimal stand-in for a Matplotlib figure."""

    @staticmethod
    def savefig(file, **settings):
        file.write(b"ink")


def test_plot_with_unknown_column_lists_the_columns(maps, tmp_path, capsys):
    assert run("plot", maps / "tsne.csv", "--color", "clas", "--out", tmp_path / "m.png") == 2
    assert "has no column 'clas'; did you mean 'class'?" in one_line_error(capsys)
    assert run("plot", maps / "tsne.csv", "--color", "weight", "--out", tmp_path / "m.png") == 2
    assert "has no column 'weight'; the columns are 'class', 'y1', 'y2'" in one_line_error(capsys)
    wide = ",".join(["y1", "y2", *(f"gene{i}" for i in range(20))])
    (tmp_path / "wide.csv").write_text(f"{wide}\n{','.join(22 * '1')}\n{','.join(22 * '2')}\n")
    assert run("plot", tmp_path / "wide.csv", "--color", "weight", "--out", tmp_path / "m.png") == 2
    assert "'gene7' and 14 more" in one_line_error(capsys)
    with pytest.raises(SystemExit):
        run("plot", maps / "tsne.csv", "--out", tmp_path / "m.pdf")
    assert "choose from .png, .svg, .html" in one_line_error(capsys)


def test_missing_map_is_an_error_even_if_it_is_named_like_a_data_set(capsys):
    assert run("plot", "digits") == 2
    assert "the map 'digits' does not exist; make one with `equipoise embed DATA`" in one_line_error(capsys)


def test_read_map_keeps_integer_classes(tmp_path):
    """A class named 3 is read from CSV as an integer and becomes neither a coordinate nor 3.0."""
    (tmp_path / "m.csv").write_text("y1,y2,class,weight\n0,1,3,0.5\n1,1,4,1\n2,0,3,2\n")
    drawn = read_map(str(tmp_path / "m.csv"))
    np.testing.assert_array_equal(drawn.Y, [[0, 1], [1, 1], [2, 0]])
    assert drawn.others["class"].dtype == np.int64 and drawn.others["weight"].dtype == np.float64


def test_read_map_keeps_extra_columns_with_gaps_and_name_clashes(tmp_path):
    extra = {"y3": np.array([9.0, 8.0, 7.0]), "z": np.array([1.0, np.nan, 3.0])}
    Y = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    data.write_map(tmp_path / "map.csv", Y, data.Dataset("a", Y, None, (), extra=extra))
    drawn = read_map(str(tmp_path / "map.csv"))
    np.testing.assert_array_equal(drawn.Y, Y)
    np.testing.assert_array_equal(drawn.others["y3_"], [9, 8, 7])
    assert np.isnan(drawn.others["z"][1])


@pytest.mark.parametrize("cell", ["a", ""])
def test_read_map_names_the_invalid_coordinate(cell, tmp_path, monkeypatch):
    path = tmp_path / "m.csv"
    path.write_text(f"y1,y2\n0,1\n1,{cell}\n2,0\n")
    with pytest.raises(ValueError, match=r"m\.csv, line 3, column 'y2': "):
        read_map(str(path))
    with path.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        with pytest.raises(ValueError, match="stdin, column 'y2': a coordinate is missing or not a finite number"):
            read_map("-")


def test_read_map_converts_sparse_maps_to_arrays(tmp_path):
    ad, pd = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    Y = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 5.0]])
    rows, columns = pd.DataFrame(index=["p", "q", "r"]), pd.DataFrame(index=["y1", "y2"])
    ad.AnnData(sparse.csr_matrix(Y), obs=rows, var=columns).write_h5ad(tmp_path / "m.h5ad")
    mmwrite(tmp_path / "m.mtx", sparse.csr_matrix(Y))
    np.testing.assert_array_equal(read_map(str(tmp_path / "m.h5ad")).Y, Y)
    np.testing.assert_array_equal(read_map(str(tmp_path / "m.h5ad"), ["y2", "y1"]).Y, Y[:, ::-1])
    np.testing.assert_array_equal(read_map(str(tmp_path / "m.mtx")).Y, Y)


def test_table_without_coordinates_is_not_a_map(maps, tmp_path, capsys):
    """The error lists the columns, or counts unnamed ones, and suggests a remedy."""
    table, array = tmp_path / "t.csv", tmp_path / "wide.npy"
    table.write_text("age,weight,height,kind\n1,2,3,a\n4,5,7,b\n7,8,8,a\n2,1,9,b\n")
    np.save(array, np.arange(20.0).reshape(4, 5))
    out = ("--out", tmp_path / "m.png")
    for words in (("plot", table, *out), ("evaluate", array, table), ("compare", array, table)):
        assert run(*words) == 2
        message = one_line_error(capsys)
        assert "t.csv is not a map" in message and "this file has 'age', 'weight', 'height', 'kind'" in message
        assert "--coordinates A,B" in message and f"`equipoise embed {table}`" in message
    assert run("plot", array, *out) == 2
    assert "wide.npy has 5 unnamed columns, but a map without column names has at most 3" in one_line_error(capsys)
    assert names(tmp_path) == ["t.csv", "wide.npy"]
    assert run("plot", table, "--coordinates", "age,height", "--color", "kind", *out) == 0
    np.testing.assert_array_equal(read_map(str(table), ["age", "height"]).Y, [[1, 3], [4, 7], [7, 8], [2, 9]])
    assert run("plot", table, "--coordinates", "age,kind", *out) == 2
    assert "column 'kind' contains text ('a') and cannot be embedded" in one_line_error(capsys)


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet", "h5ad"])
def test_read_map_reads_every_format(suffix, maps, tmp_path):
    if suffix == "h5ad":
        pytest.importorskip("anndata")
    Y = read_map(str(maps / "tsne.csv")).Y
    data.write_map(tmp_path / f"m.{suffix}", Y, data.load("iris"))
    np.testing.assert_array_equal(read_map(str(tmp_path / f"m.{suffix}")).Y, Y)


def test_read_map_accepts_unnamed_columns(tmp_path):
    (tmp_path / "m.csv").write_text("0,1\n2,3\n4,5\n")
    np.testing.assert_array_equal(read_map(str(tmp_path / "m.csv")).Y, [[0, 1], [2, 3], [4, 5]])


def test_plot_does_not_overwrite_the_figure_of_embed(maps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert embed("circle", "--n-iter", 5) == 0
    before = (tmp_path / "circle.png").read_bytes()
    assert run("plot", "circle.csv", "--dark") == 0
    assert names(tmp_path) == ["circle-plot.png", "circle.csv", "circle.png"]
    assert (tmp_path / "circle.png").read_bytes() == before


def test_plot_of_a_model_is_coloured_by_the_classes_of_embed(maps, tmp_path, monkeypatch):
    colors = []
    monkeypatch.setattr("equipoise.views.plot.plot", lambda Y, color, **more: colors.append(color) or FakeFigure)
    for source in ("tsne.csv", "tsne.eq"):
        assert run("plot", maps / source, "--out", tmp_path / "plot.png") == 0
    assert len(set(colors[0])) == 3
    np.testing.assert_array_equal(*colors)


def test_model_without_one_class_per_row_is_damaged(maps, tmp_path, capsys):
    method = eq.load(maps / "tsne.eq")
    method.row_classes_ = ["a"]
    eq.save(method, tmp_path / "m.eq")
    assert run("plot", tmp_path / "m.eq", "--out", tmp_path / "plot.png") == 2
    assert "m.eq is damaged: it does not contain one class per row" in one_line_error(capsys)


def test_transform_draws_new_rows_over_the_map(maps, tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr("equipoise.views.plot.plot", lambda Y, color, **more: drawn.update(Y=Y, **more) or FakeFigure)
    assert run("transform", maps / "tsne.eq", "iris", "--out", tmp_path) == 0
    np.testing.assert_array_equal(drawn["over"], eq.load(maps / "tsne.eq").embedding_)
    np.testing.assert_array_equal(drawn["Y"].round(3), read_map(str(tmp_path / "iris.csv")).Y.astype("f4").round(3))


@pytest.mark.parametrize("labelled", [True, False])
def test_transform_page_shows_the_map_in_grey(labelled, maps, tmp_path, monkeypatch):
    pytest.importorskip("bokeh")
    drawn = {}

    def page(Y, color, *, table, title, dark, geometry, images):
        drawn.update(Y=Y, color=table[color], columns=list(table))
        return type("Page", (), {"html": "page"})

    monkeypatch.setattr("equipoise.views.page.page", page)
    np.save(tmp_path / "bare.npy", data.load("iris").X)
    source = "iris" if labelled else tmp_path / "bare.npy"
    assert run("transform", maps / "tsne.eq", source, "--plot", "html", "--out", tmp_path) == 0
    assert drawn["Y"].shape == (300, 2)
    assert drawn["color"][:150].tolist() == [None] * 150
    assert set(drawn["color"][150:]) == (set(data.load("iris").classes) if labelled else {"new"})


def test_with_reference_avoids_a_clash_with_a_column_named_placed():
    columns = {"placed": np.array(["yes", "no"], dtype=object)}
    drawing = with_reference(Drawing(np.zeros((2, 2)), columns, None, "t"), np.ones((3, 2)))
    assert drawing.color == "placed_" and drawing.columns["placed_"].tolist() == [None] * 3 + ["new"] * 2
    assert drawing.columns["placed"].tolist() == [None] * 3 + ["yes", "no"]


def test_evaluate_uses_the_preparation_of_the_model(tmp_path, capsys):
    """The columns, preparation and metric of the fit are used and printed; options that repeat them are errors."""
    X = np.random.default_rng(0).gamma(2.0, size=(60, 4)) * [1, 10, 100, 1000]
    lines = [",".join(map(str, [*row, 9 * i])) for i, row in enumerate(X.tolist())]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,noise", *lines]))
    model, chosen = tmp_path / "m.eq", ("--columns", "a,b,c,d", "--log1p", "--standardize", "--pca", 3)
    words = (*chosen, "--metric", "cosine", "--n-iter", 50, "--out", tmp_path / "m.csv", "--save", model)
    assert embed(tmp_path / "t.csv", *words) == 0
    capsys.readouterr()
    assert run("evaluate", tmp_path / "t.csv", model) == 0
    by_model = capsys.readouterr().out
    about = "t, log(1 + x), standardised, 3 principal components"
    assert by_model.splitlines()[0] == f"data                {about}, as for {model}"
    assert "3 columns, cosine distances, map in 2 dimensions; k = 15 neighbours" in by_model
    assert run("evaluate", tmp_path / "t.csv", tmp_path / "m.csv", *chosen, "--metric", "cosine") == 0
    by_hand = capsys.readouterr().out
    assert by_hand.splitlines()[0] == f"data                {about}"
    assert by_hand.splitlines()[2:12] == by_model.splitlines()[2:12]
    assert run("evaluate", tmp_path / "t.csv", model, "--pca", 2) == 2
    assert "m.eq already defines the preparation of its data; omit --pca" in one_line_error(capsys)


def test_compare_requires_equal_preparation(maps, tmp_path, capsys):
    assert embed("iris", "--standardize", "--n-iter", 5, "--out", tmp_path / "s.csv", "--save", tmp_path / "s.eq") == 0
    assert run("compare", "iris", maps / "tsne.eq", maps / "pca.csv") == 0
    assert "iris, unchanged, as for tsne" in capsys.readouterr().out
    assert run("compare", "iris", maps / "tsne.eq", tmp_path / "s.eq") == 2
    assert "tsne and s were fitted to differently prepared data (unchanged; standardised)" in one_line_error(capsys)


def test_compare_requires_equal_metrics_and_columns(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(40, 3))
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in X.tolist())]))
    choices = {"e": (), "cos": ("--metric", "cosine"), "ab": ("--columns", "a,b")}
    for name, words in choices.items():
        files = ("--out", tmp_path / f"{name}.csv", "--save", tmp_path / f"{name}.eq")
        assert embed(tmp_path / "t.csv", "--plot", "none", "--n-iter", 5, *words, *files) == 0
    e, cos, ab = (tmp_path / f"{name}.eq" for name in choices)
    capsys.readouterr()
    assert run("compare", tmp_path / "t.csv", e, cos) == 2
    message = "e and cos were fitted with different metrics (euclidean; cosine); choose one for all with --metric"
    assert message in one_line_error(capsys)
    assert run("compare", tmp_path / "t.csv", e, cos, "--metric", "cosine") == 0
    assert "cosine distances" in capsys.readouterr().out
    assert run("compare", tmp_path / "t.csv", ab, e) == 2
    message = "ab and e were fitted to different columns ('a', 'b'; 'a', 'b', 'c'); choose the columns for all with"
    assert message in one_line_error(capsys)
    assert run("compare", tmp_path / "t.csv", ab, e, "--columns", "a,c") == 0
    assert "2 columns" in capsys.readouterr().out


def test_evaluate_of_a_model_from_affinities_requires_a_metric(tmp_path, capsys):
    P = np.exp(-np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))) * (1 - np.eye(20))
    np.save(tmp_path / "p.npy", P)
    words = ("--affinity", "precomputed", "--n-iter", 5, "--out", tmp_path / "m.csv", "--save", tmp_path / "m.eq")
    assert embed(tmp_path / "p.npy", *words) == 0
    capsys.readouterr()
    assert run("evaluate", tmp_path / "p.npy", tmp_path / "m.eq") == 2
    assert "fitted to affinities, not to distances, so the metric of DATA is unknown" in one_line_error(capsys)


@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_k_of_zero_is_an_error(maps, verb, capsys):
    assert run(verb, "iris", maps / "tsne.csv", "--k", 0) == 2
    assert "k must be between 1 and n_samples - 1 = 149, got 0" in one_line_error(capsys)


def test_npz_map_is_read_with_its_other_columns(tmp_path):
    Y, kinds = np.arange(8.0).reshape(4, 2), np.array(["a", "b", "a", "b"])
    np.savez(tmp_path / "m.npz", Y=Y, **{"class": kinds})
    found = read_map(str(tmp_path / "m.npz"))
    np.testing.assert_array_equal(found.Y, Y)
    assert found.columns == () and found.others["class"].tolist() == kinds.tolist()
    with pytest.raises(ValueError, match=r"m\.npz: the table in an NPZ file has no column names"):
        read_map(str(tmp_path / "m.npz"), ["u", "v"])


def test_evaluate_uses_fewer_neighbours_for_few_rows(tmp_path, capsys):
    np.save(tmp_path / "few.npy", np.random.default_rng(0).normal(size=(12, 2)))
    assert run("evaluate", tmp_path / "few.npy", tmp_path / "few.npy") == 0
    assert "k = 5 neighbours" in capsys.readouterr().out

"""The command that reproduces the papers' tables and figures runs on the digits data, with plausible numbers."""

from importlib.util import find_spec

import numpy as np
import pytest
from matplotlib.image import imread
from support.shared_data import SHARED
from support.source_tree import ROOT, needs

BENCHMARKS = ROOT / "benchmarks"
FACES = SHARED / "olivetti_faces.npz"
pytestmark = [pytest.mark.slow, needs("benchmarks")]
PICTURES = [*(f"fig{number}.png" for number in range(3, 18)), "program.png", "002_fig2.png", "002_fig3.png"]
TORCH = find_spec("torch") is not None
PICTURES += ["002_fig7.png"] * TORCH


@pytest.fixture(scope="module", autouse=True)
def benchmarks_on_path():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        patch.syspath_prepend(str(BENCHMARKS / "papers"))
        yield


@pytest.fixture(scope="module")
def short_run(tmp_path_factory, benchmarks_on_path):
    """Run the short version; return the text of its page and its folder."""
    import run

    page = tmp_path_factory.mktemp("papers") / "papers.md"
    run.main(["--short", "--out", str(page)])
    return page.read_text(encoding="utf-8"), page.with_suffix("")


def values(folder, section):
    from experiment import read_values

    return read_values(folder / f"{section}.json")[1]


def test_page_has_every_section_and_figure(short_run):
    import run

    text, folder = short_run
    sections = {name: section for name, section in run.SECTIONS.items() if TORCH or name != "network"}
    assert all(f"## {section.TITLE}\n" in text for section in sections.values())
    assert text.index("## Verdicts") < text.index("## Paper 001")
    assert sorted(path.name for path in folder.glob("*.png")) == sorted(PICTURES)
    for name in PICTURES:
        assert f"]({folder.name}/{name})" in text
        image = imread(folder / name)[..., :3]
        assert (image.min(axis=2) < 0.9).mean() > 0.01, f"{name} is nearly empty"
        assert (folder / name).stat().st_size < 300_000
    assert "nan" not in text


def test_table_2_compares_our_errors_with_the_paper(short_run):
    import table2

    text, folder = short_run
    found = values(folder, "table2")
    ours, source = (table2.errors(found, "mnist-1k", name) for name in ("t-SNE", "input"))
    assert len(ours) == 2 and len(table2.errors(found, "mnist-1k", "t-SNE", (-1,))) == 1  # draws, and the first rows
    assert ours.mean() < source.mean() + 10
    row = next(line for line in text.splitlines() if line.startswith("| digits for MNIST, 1k | t-SNE |"))
    assert f"{source.mean():.2f} ±" in row and "| 11.6 |" in row and f"**{ours.mean():.2f} ±" in row


def test_setting_with_smallest_error_on_the_other_rows_is_chosen():
    import tuning

    errors = {"-1/2": 0.03, "-1.2/2": 0.04, "-1/1.8": 0.02, "-0.8/2.2": 0.02, "7/7": 0.0}
    found = {f"mnist-3k/1/g-SNE/{setting}/choice": {"error": error} for setting, error in errors.items()}
    found["mnist-3k/1/g-SNE/-1/2/test"] = {"error": 0.0}
    assert tuning.choose(found, "mnist-3k", 1, "g-SNE") == (-1.0, 1.8)  # ties go to the first
    assert all(len(settings) == 9 for settings in tuning.FAMILIES.values())  # tuned alike
    with pytest.raises(ValueError, match="no results of the search for mnist-1k; run with --only tuning first"):
        tuning.choose(found, "mnist-1k", 0, "g-SNE")


def test_draws_and_splits_have_no_row_in_common():
    from rows import FIRST, LAST, _block, _halves

    blocks = [_block(100, 10, seed) for seed in (0, 1, 2, LAST, LAST - 1)]
    assert len(np.unique(np.concatenate(blocks))) == 50
    assert (_block(100, 10, FIRST) == np.arange(10)).all()
    with pytest.raises(ValueError, match="draw 9 of 20 rows needs more than the 100 rows there are"):
        _block(100, 20, 9)
    first, second = _halves(np.repeat([0, 1, 2], 10), 0)
    assert (np.sort(np.concatenate([first, second])) == np.arange(30)).all() and len(first) == 15


def test_verdict_needs_a_significant_difference_or_a_narrow_interval():
    from verdicts import alike, lower, lower_of_two, with_gain

    assert lower([-1.0, -1.1, -0.9], "error") == "yes" and lower([1.0, 1.1, 0.9], "error") == "no"
    assert lower([-0.1, -0.2, -0.15], "error") == "yes, by less than 0.5 points of 1-NN error"
    assert lower([-0.1, 0.1, 0.05, -0.06], "error") == "no difference beyond 0.5 points of 1-NN error"
    undecided = lower([-1.0, 1.2, 0.1], "error")
    assert undecided.startswith("not decided (difference +0.10, 95 % interval −2.63 to +2.83; about ")
    assert lower([-2.0], "error") == "not decided (difference −2.00, one draw)"
    assert lower_of_two([1.0, 1.1, 0.9], [3.0, 3.1], "index") == "yes"
    assert alike([0.1, -0.1, 0.05], "accuracy") == "yes, no difference beyond 1 point of accuracy"
    assert alike([-3.0, -3.1, -2.9], "accuracy") == "no, lower by 3.00 points of accuracy"
    assert with_gain("yes", [0.01]) == "yes" and with_gain("yes", [0.3]) == "yes; not converged (gain up to 30%)"


def test_suggested_number_of_draws_decides():
    from verdicts import MEASURES, Estimate, _not_decided

    found = Estimate(mean=0.2, error=0.5, freedom=4, draws=5)
    needed = int(_not_decided(found, MEASURES["error"]).split("about ")[1].split()[0])
    before, after = found.with_draws(needed - 1), found.with_draws(needed)
    margin = MEASURES["error"].margin
    assert (after.significant or after.within(margin)) and not (before.significant or before.within(margin))
    assert found.with_draws(5) == found


def test_eq_13_of_the_program_module_is_g_sne_and_the_program_is_not():
    import program

    import equipoise as eq

    rng = np.random.RandomState(0)
    X, Y = rng.standard_normal((40, 5)), rng.standard_normal((40, 2))
    P = eq.TSNE(perplexity=8, engine="exact").problem(X).affinities.astype(np.float64)
    P = np.maximum(P.toarray() if hasattr(P, "toarray") else P, program.TINY)
    for alpha, beta, eta in ((-1.0, 2.0, 1.0), (-0.5, 3.0, 0.1)):
        method = eq.GSNE(alpha=alpha, beta=beta, eta=eta, perplexity=8, engine="reference")
        expected = method.problem(X).gradient(Y)
        gradient = program.Consistent(alpha, beta, eta).gradient(P, Y)
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
        other = program.OwnSlope(alpha, beta, eta).gradient(P, Y)
        assert np.abs(other - gradient).max() > 0.1 * np.abs(gradient).max()


def test_ledger_resumes_stored_values(tmp_path):
    from experiment import Ledger

    first = Ledger(tmp_path / "a.json", {}, resume=False)
    assert first.get("x", lambda: 1.5) == 1.5
    assert Ledger(tmp_path / "a.json", {}, resume=True).get("x", lambda: 2.5) == 1.5
    assert Ledger(tmp_path / "a.json", {}, resume=False).get("x", lambda: 2.5) == 2.5


def test_table_3_matches_direct_computation(short_run):
    import table3

    found = values(short_run[1], "table3")
    at = dict(zip(table3.ALPHAS, found["disk of radius 6, normalised"], strict=True))
    rng = np.random.RandomState(0)
    angle, r = rng.uniform(0, 2 * np.pi, 500), 6 * np.sqrt(rng.uniform(size=500))
    d2 = np.abs(np.subtract.outer(r * np.exp(1j * angle), r * np.exp(1j * angle))) ** 2
    p, q = np.exp(-d2 / 30), 1 / (1 + d2)
    for matrix in (p, q):
        np.fill_diagonal(matrix, 0)
        matrix /= matrix.sum()
    off = ~np.eye(500, dtype=bool)
    assert at[-1.0] == pytest.approx((p[off] * np.log(p[off] / q[off])).sum())
    assert at[0.0] == pytest.approx(2 * ((np.sqrt(p) - np.sqrt(q)) ** 2).sum())


def test_force_laws_match_table_1(short_run):
    assert max(numbers["off"] for numbers in values(short_run[1], "forces")["forces"].values()) < 1e-6


def test_eta_is_a_unit_of_length(short_run):
    units, fixed = values(short_run[1], "eta")["0"].values()
    assert min(numbers["same"] for numbers in units) > 0.99
    assert min(numbers["same"] for numbers in fixed) < 0.9  # with the paper's fixed steps, eta changes the map


def test_flows_converge_to_closed_forms(short_run):
    assert min(numbers["r2"] for numbers in values(short_run[1], "flow")["flow"].values()) > 0.99999


def test_trend_requires_strict_monotonicity():
    from experiment import trend

    assert trend([1, 2, 3]) == "rises" and trend([3, 1, 0]) == "falls"
    assert trend([1, 2, 2]) == trend([1, 3, 2]) == "neither rises nor falls throughout"


def test_covered_area_of_a_grid_and_of_two_points():
    from experiment import CELLS, covered

    line = np.linspace(0, 1, 10 * CELLS)
    assert covered(np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)) == 1
    assert covered(np.repeat([[0.0, 0.0], [1.0, 1.0]], 100, axis=0)) < 3 / CELLS**2


@pytest.mark.skipif(not FACES.exists(), reason="../shared/data/olivetti_faces.npz does not exist")
def test_olivetti_faces_match_the_paper():
    from rows import Shared

    from equipoise.evaluate import one_nn_error

    rows = Shared().draw("olivetti", 0)
    assert rows.X.shape == (400, 50) and rows.images.shape == (400, 64, 64)
    assert (np.bincount(rows.labels) == 10).all()
    assert 0.02 < one_nn_error(rows.X, rows.labels) < 0.06

"""The command that reproduces the papers' tables and figures runs on the digits data, with plausible numbers."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FACES = Path(__file__).parents[2] / "shared" / "data" / "olivetti_faces.npz"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BENCHMARKS.exists(), reason="benchmarks are not in the source distribution"),
]
PICTURES = [*(f"fig{number}.png" for number in range(3, 18)), "002_fig2.png", "002_fig3.png"]


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
    assert all(f"## {section.TITLE}\n" in text for section in run.SECTIONS.values())
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
    cells = table2.Cells(found, "olivetti")
    assert len(cells.of("t-SNE")) == 2  # draws
    assert max(cells.of("t-SNE").mean(), cells.of("s-SNE").mean()) < cells.of("input").mean() + 0.1
    assert cells.of("SNE").mean() < 0.5
    row = next(line for line in text.splitlines() if line.startswith("| digits for Olivetti | 2 | t-SNE"))
    assert f"{100 * cells.of('input').mean():.2f} ±" in row and "| 5.3 |" in row
    assert f"**{100 * cells.of('t-SNE').mean():.2f} ±" in row
    assert not set(map(str, (100, 101, 102))) & {key.split("/")[1] for key in found}  # these draws are for tuning only


def test_g_sne_setting_with_smallest_mean_error_is_chosen():
    import tuning

    errors = {"-1/2": 0.01, "-1.2/2": 0.04, "-0.8/2": 0.03, "-1/1.8": 0.02, "-0.8/2.2": 0.02, "7/7": 0.0}
    scores = {
        f"mnist-6k/{seed}/{setting}": {"error": error + shift}
        for setting, error in errors.items()
        for seed, shift in ((100, 0.0), (101, 0.01))
    }
    assert tuning.choose(scores, "mnist-6k") == (-1.0, 1.8)  # t-SNE's own setting is excluded; ties go to the first
    assert tuning.choose(scores, "mnist-6k", beta=2.0) == (-0.8, 2.0)
    assert tuning.choose(scores, "mnist-14k") == (-1.0, 1.8)  # uses the choice for fewer rows
    with pytest.raises(ValueError, match="no results of the search for coil20; run with --only tuning first"):
        tuning.choose(scores, "coil20")


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
    units, fixed = values(short_run[1], "eta")["eta"].values()
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

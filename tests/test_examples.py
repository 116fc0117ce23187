"""Every example runs as a script, prints plausible numbers and writes pictures that are not empty."""

import re
import runpy
import sys

import numpy as np
import pytest
from matplotlib.image import imread
from support.shared_data import SHARED
from support.source_tree import ROOT, needs

EXAMPLES = ROOT / "examples"
pytestmark = needs("examples", "docs")
HORSE = SHARED / "mesh_horse.npz"
PICTURES = {
    "alpha.py": ["alpha.png"],
    "any_space.py": ["any_space.png"],
    "canonical_forms.py": ["canonical_forms.png"],
    "cartographer.py": ["cartographer.png"],
    "dynamics.py": ["dynamics.png"],
    "flow.py": ["flow.png"],
    "force_laws.py": ["force_laws.png", "net_force.png"],
    "four_points.py": ["four_points.png"],
    "geometries.py": ["geometry_hyperbolic.png", "geometry_sphere.png", "geometry_torus.png"],
    "input_kernels.py": ["input_kernels.png"],
    "isolines.py": ["isolines.png"],
    "learned_metric.py": ["learned_metric.png"],
    "look_inside.py": ["look_inside.png"],
    "overview.py": ["overview.png"],
    "own_kernel.py": ["own_kernel.png"],
    "pair_losses.py": ["pair_losses.png"],
    "penalties.py": ["heavy_tail.png", "penalties.png"],
    "pictures.py": ["classes.png", "digits.html", "forces_on_map.png", "image_grid.png", "images.png"],
    "readme_pictures.py": ["digits.png", "family.png", "forces.png"],
    "shape_retrieval.py": ["shape_retrieval.png"],
    "spectrum.py": ["spectrum.png"],
    "sphere.py": ["sphere.png", "sphere_unrolled.png"],
    "starts.py": ["starts.png"],
    "stability.py": ["figure_1.png", "stability.png"],
    "sweep.py": ["grid.png", "sweep.png", "toys.png"],
    "tissot.py": ["tissot.png", "tissot_digits.png"],
    "trust.py": ["trust.html", "trust.png"],
    "unfolding.py": ["unfolding.png"],
}


def printed_numbers(text, pattern):
    """Return the numbers that follow a pattern in printed text, with percentages as fractions."""
    found = re.findall(pattern + r"\s*(-?\d[\d.e+-]*)(%?)", text)
    return [float(value) / (100 if percent else 1) for value, percent in found]


def run_example(name, folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, str(folder)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert sorted(path.name for path in folder.iterdir()) == PICTURES[name]
    for path in folder.glob("*.png"):
        image = imread(path)[..., :3]
        assert image.shape[0] >= 400 and image.shape[1] >= 700, path.name
        tenths = (10 * image).round().astype(np.int64)  # 0 to 10 for each of red, green and blue
        counts = np.bincount((tenths @ [121, 11, 1]).ravel())
        assert (counts > 0).sum() > 10 and counts.max() < 0.998 * counts.sum(), f"{path.name} is nearly empty"
    return capsys.readouterr().out


def test_every_example_is_listed_and_documented():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(PICTURES)
    for name in PICTURES:
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        assert text.startswith('"""') and "Writes" in text.split('"""')[1], name


def test_pair_losses(tmp_path, monkeypatch, capsys):
    text = run_example("pair_losses.py", tmp_path, monkeypatch, capsys)
    accuracies = printed_numbers(text, "accuracy")
    assert len(accuracies) == 8 and min(accuracies) > 0.9


def test_penalties(tmp_path, monkeypatch, capsys):
    text = run_example("penalties.py", tmp_path, monkeypatch, capsys)
    missed, false = (printed_numbers(text, rf"{word} neighbour") for word in ("missed", "false"))
    assert missed[0] > 3 * false[0] and false[1] > 3 * missed[1]  # KL(P ‖ Q) and KL(Q ‖ P)
    assert missed[0] == false[1] and missed[2] == false[2]
    assert "SNE() 1.52, TSNE() 3" in text


def test_geometries(tmp_path, monkeypatch, capsys):
    text = run_example("geometries.py", tmp_path, monkeypatch, capsys)
    kept, distances = printed_numbers(text, "neighbours kept"), printed_numbers(text, "distances")
    angles, tree, directions = np.split(np.column_stack([kept, distances]), [2, 5])
    for plane, curved in (angles, directions[:2]):
        assert (curved > plane + 0.05).all() and curved[1] > plane[1] + 0.1
    assert tree[0, 1] < tree[1, 1] < tree[2, 1] and tree[2, 0] > tree[0, 0] + 0.01  # plane, "auto", radius 3
    np.testing.assert_allclose(directions[2], directions[0], atol=0.03)  # a patch: the radius "auto" is too large


def test_own_kernel(tmp_path, monkeypatch, capsys):
    text = run_example("own_kernel.py", tmp_path, monkeypatch, capsys)
    gaussian, small_tail, student = printed_numbers(text, "loss")
    assert gaussian > 2 * small_tail  # as the docstring of the example states
    assert 0 < student < gaussian < 1


def test_force_laws(tmp_path, monkeypatch, capsys):
    text = run_example("force_laws.py", tmp_path, monkeypatch, capsys)
    # Table 1 of Lin et al. 2024 at r = 1, p = Z = 1: SNE, t-SNE, p-SNE, g-SNE with η = 1/4
    np.testing.assert_allclose(printed_numbers(text, "attraction at r = 1:"), [4, 2, 4, 4 / 1.25], atol=2e-3)
    np.testing.assert_allclose(printed_numbers(text, "repulsion:"), [4 / np.e, 1, 4, 4 / 1.25**2], atol=2e-3)
    np.testing.assert_allclose(printed_numbers(text, "balance at r ="), 5 * [3.0], atol=0.02)


def test_flow(tmp_path, monkeypatch, capsys):
    text = run_example("flow.py", tmp_path, monkeypatch, capsys)
    r2, steps = printed_numbers(text, "R2"), printed_numbers(text, "steps")
    assert len(r2) == 6 and min(r2) > 0.99999
    assert all(fast < slow for fast, slow in zip(steps[::2], steps[1::2], strict=True))


def test_alpha(tmp_path, monkeypatch, capsys):
    text = run_example("alpha.py", tmp_path, monkeypatch, capsys)
    assert printed_numbers(text, "alpha =") == [-2, -1.5, -1, -0.5, 0, 0.6]
    assert all(0.1 < loss < 0.7 for loss in printed_numbers(text, "loss"))
    assert all(kept > 0.65 for kept in printed_numbers(text, "neighbours kept"))


def test_sphere(tmp_path, monkeypatch, capsys):
    text = run_example("sphere.py", tmp_path, monkeypatch, capsys)
    ((nearest, farthest),) = re.findall(r"centre ([\d.]+) to ([\d.]+)", text)
    assert float(nearest) > 0.99999 and float(farthest) < 1.00001
    assert printed_numbers(text, "their mean")[0] < 0.3  # the points cover the whole sphere
    assert printed_numbers(text, "neighbours kept")[0] > 0.65


def test_look_inside(tmp_path, monkeypatch, capsys):
    text = run_example("look_inside.py", tmp_path, monkeypatch, capsys)
    assert printed_numbers(text, "sum") == [1.0]
    assert "stopped by       callback" in text
    assert printed_numbers(text, "final loss")[0] < 0.2 * printed_numbers(text, "initial loss")[0]
    assert printed_numbers(text, "balance")[0] < 1e-12 and printed_numbers(text, "total attraction")[0] < 1e-12
    assert printed_numbers(text, "net force")[0] < 0.05


# matplotlib pads faces with unused corners and projects these from uninitialised memory.
unset_corners = pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered in dot:RuntimeWarning")


@unset_corners
def test_four_points(tmp_path, monkeypatch, capsys):
    text = run_example("four_points.py", tmp_path, monkeypatch, capsys)
    assert "axioms of a metric: a metric on 4 points" in text and "isometry: True" not in text
    assert printed_numbers(text, "eigenvalues:") == [-0.25]  # one is negative
    line, *others = printed_numbers(text, "stress")
    assert line > 0.3  # a line is worse than the plane; three dimensions are no better
    np.testing.assert_allclose(others, 4.5 - 2 * np.sqrt(5), atol=1e-3)  # docs/math.md, section 18
    assert "embeds isometrically in no Euclidean space" in text


def test_any_space(tmp_path, monkeypatch, capsys):
    text = run_example("any_space.py", tmp_path, monkeypatch, capsys)
    geodesic, straight, maze = printed_numbers(text, "neighbours kept")
    assert geodesic > 0.75 and straight < 0.5 and maze > 0.75
    assert printed_numbers(text, "nearest point of the map")[0] < 1.5  # the vertices are 1 apart
    assert printed_numbers(text, "branch error")[0] < 0.05  # only sequences next to a fork may be mistaken
    smallest, largest = (printed_numbers(text, word)[0] for word in ("radius", " to"))
    assert 1.35 < smallest < largest < 1.42


def test_input_kernels(tmp_path, monkeypatch, capsys):
    text = run_example("input_kernels.py", tmp_path, monkeypatch, capsys)
    perplexity, narrow, middle, wide, exponential, walks = printed_numbers(text, "1-NN error")
    assert max(perplexity, wide, exponential, walks) < 0.05 < middle < 0.2 < narrow
    alone = printed_numbers(text, "without neighbours")
    assert alone[1] > 200 > 20 > alone[2] and alone[0] == alone[3] == alone[4] == 0


def test_unfolding(tmp_path, monkeypatch, capsys):
    text = run_example("unfolding.py", tmp_path, monkeypatch, capsys)
    isomap, transport = printed_numbers(text, "disagreement")
    assert transport < 0.01 < 0.05 < isomap
    rings, pca, kernel_pca = printed_numbers(text, "along an axis")
    assert max(rings, pca) < 0 < kernel_pca


def test_isolines(tmp_path, monkeypatch, capsys):
    text = run_example("isolines.py", tmp_path, monkeypatch, capsys)
    ((lines, closed),) = re.findall(r"torus: (\d+) lines, of which (\d+) are closed", text)
    assert lines == closed and int(lines) >= 24  # a torus has no boundary
    isomap, tsne = printed_numbers(text, "spacing")
    assert isomap < 1.6 < 2 < tsne


@unset_corners
def test_cartographer(tmp_path, monkeypatch, capsys):
    text = run_example("cartographer.py", tmp_path, monkeypatch, capsys)
    stress = printed_numbers(text, "stress")
    assert len(stress) == 5 and stress[-1] == min(stress) > 0.05  # MDS has the smallest stress, which is not 0
    assert min(printed_numbers(text, "; distortion")) > 10


@pytest.mark.slow
@pytest.mark.skipif(not HORSE.exists(), reason="../shared/data/mesh_horse.npz does not exist")
def test_shape_retrieval(tmp_path, monkeypatch, capsys):
    pytest.importorskip("potpourri3d")
    text = run_example("shape_retrieval.py", tmp_path, monkeypatch, capsys)
    vertices, forms = printed_numbers(text, "same animal")
    vertices_tier, forms_tier = printed_numbers(text, "first tier")
    assert forms == 1 > vertices and forms_tier > 0.85 > 0.6 > vertices_tier


@pytest.mark.skipif(not HORSE.exists(), reason="../shared/data/mesh_horse.npz does not exist")
def test_canonical_forms(tmp_path, monkeypatch, capsys):
    pytest.importorskip("potpourri3d")
    text = run_example("canonical_forms.py", tmp_path, monkeypatch, capsys)
    shapes, forms = (
        printed_numbers(text, "disagreement of the shapes"),
        printed_numbers(text, "of their canonical forms"),
    )
    assert len(shapes) == 2 and all(form < shape / 5 for shape, form in zip(shapes, forms, strict=True))


def test_readme_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EQUIPOISE_QUICK", "1")
    text = run_example("readme_pictures.py", tmp_path, monkeypatch, capsys)
    kept = printed_numbers(text, "neighbours kept")
    assert len(kept) == 6 and min(kept) > 0.6


def test_pictures(tmp_path, monkeypatch, capsys):
    pytest.importorskip("bokeh")
    monkeypatch.setenv("EQUIPOISE_QUICK", "1")
    text = run_example("pictures.py", tmp_path, monkeypatch, capsys)
    (shown,) = re.findall(r"(\d+) of 200 images are shown", text)
    assert 50 < int(shown) < 200
    assert "200 digits" in (tmp_path / "digits.html").read_text(encoding="utf-8")


def test_overview(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EQUIPOISE_QUICK", "1")
    monkeypatch.syspath_prepend(str(EXAMPLES))  # as when it is run as a script
    text = run_example("overview.py", tmp_path, monkeypatch, capsys)
    assert min(printed_numbers(text, "trustworthiness")) > 0.95


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("README.md", ["overview.png", "studio.png"]),
        ("docs/index.md", ["overview.png"]),
        ("docs/start/methods.md", ["family.png", "forces.png", "spectrum.png"]),
    ],
)
def test_pictures_of_the_first_pages_exist(page, names):
    text = (EXAMPLES.parent / page).read_text(encoding="utf-8")
    for name in names:
        assert f"images/{name}" in text
        assert (EXAMPLES.parent / "docs" / "images" / name).stat().st_size > 10_000


def test_dynamics(tmp_path, monkeypatch, capsys):
    text = run_example("dynamics.py", tmp_path, monkeypatch, capsys)
    conserved, lost = printed_numbers(text, "total energy changed by")
    assert conserved < 0.002 and 0.7 < lost < 1
    assert max(printed_numbers(text, "loss")) < 0.6


def test_learned_metric(tmp_path, monkeypatch, capsys):
    text = run_example("learned_metric.py", tmp_path, monkeypatch, capsys)
    euclidean, alone, classes = printed_numbers(text, "error of new rows")
    assert euclidean > 0.1 and alone < 0.06 and classes < 0.06


def test_spectrum(tmp_path, monkeypatch, capsys):
    kept = printed_numbers(run_example("spectrum.py", tmp_path, monkeypatch, capsys), "neighbours kept")
    assert len(kept) == 8
    assert kept[1] < kept[3] < kept[5]  # exaggeration 20, 4, 1
    assert kept[7] > kept[3]  # UMAP keeps more than an exaggeration of 4


def test_starts(tmp_path, monkeypatch, capsys):
    losses = printed_numbers(run_example("starts.py", tmp_path, monkeypatch, capsys), "loss per point")
    assert len(losses) == 10
    for *starts, chosen in (losses[:5], losses[5:]):
        assert chosen <= min(starts) + 0.01 and chosen < 0.7 * starts[0]


def test_trust(tmp_path, monkeypatch, capsys):
    pytest.importorskip("bokeh")
    text = run_example("trust.py", tmp_path, monkeypatch, capsys)
    (trust,) = (line.split() for line in text.splitlines() if line.startswith("trustworthiness") and "*" in line)
    pca, tsne, umap = (float(word) for word in trust[1:] if word != "*")
    assert pca < 0.9 and min(tsne, umap) > 0.97
    assert "Neither lengths nor the sizes of groups can be compared" in " ".join(text.split())
    assert (tmp_path / "trust.html").stat().st_size > 500_000  # the page contains Bokeh


def test_stability(tmp_path, monkeypatch, capsys):
    text = run_example("stability.py", tmp_path, monkeypatch, capsys)
    moved = np.array(printed_numbers(text, "moved")).reshape(
        2, 4, 3
    )  # planes and rolls; methods; another seed, two changes
    (pca, isomap, umap, sampled), rolls = moved
    assert min(*pca[1:], *isomap[1:]) > 0.4 and max(umap[2], sampled[2]) < 0.5  # the tails; Draganov & Dohn, Fig. 1 (a)
    assert rolls[:3].max() < 0.1 < rolls[3].min()  # Fig. 1 (b); only the sampled runs move
    parts, *others = printed_numbers(text, r"median(?: variation)?")
    assert len(others) == 3 and parts > 2 * max(others)


def test_sweep(tmp_path, monkeypatch, capsys):
    text = run_example("sweep.py", tmp_path, monkeypatch, capsys)
    assert text.count("Perplexity is the effective number of neighbours.") == 2
    assert max(printed_numbers(text, r"two_sizes .*widths 1 :")) < 1.5  # of 10
    assert max(printed_numbers(text, r"three_distances .*distances 1 :")) < 1.5  # of 5
    even, _, clumped = printed_numbers(text, "spacing")
    assert clumped < 1 < even
    wide, _, narrow = printed_numbers(text, r"nested .*widths 1 :")
    assert wide > 1.5 * narrow
    assert all(number >= 2 for number in printed_numbers(text, r"linked_rings .*cuts"))


def test_tissot(tmp_path, monkeypatch, capsys):
    text = run_example("tissot.py", tmp_path, monkeypatch, capsys)
    mercator, lambert, azimuthal, flat, digits = printed_numbers(text, "anisotropy")
    assert mercator < 1.01 < lambert < azimuthal and mercator < flat < digits
    assert printed_numbers(text, "local scale")[1] == pytest.approx(1, abs=0.01)  # equal areas
    assert text.rstrip().splitlines()[-1].startswith("axis 1   pixel ")

"""Write a page for each public method: docstring, formulas from docs/math.md, a map and a plot of the force law."""

import inspect
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise import data, methods

from . import equations
from .fresh import is_newer

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "generated" / "methods"
POINTS = 500  # digits in the map on a page
REACH = {"SphericalSNE": 2}  # the largest distance on the unit sphere
CROWD = {"UMAP": 5.0}  # for UMAP, Z is the number of points: 5 negatives among 5 points make the forces comparable
PAIR = {  # the meaning of p and Z in `pair_forces`
    "SNE": "Two points with $p_{j \\mid i} = p_{i \\mid j} = 1$ and $Z_i = Z_j = 1$",
    "UMAP": "Two points of membership 1 and degree 1 among five, with 5 negatives per edge",
    "DKLLE": "Two points with $M_{ij} = -1$ and the repulsion of $n = 1$",
    "DKPCA": "Two points with $k_x = 1$, far from all others",
    "PairEmbedding": "Two points with $k_x = 1$ under UMAP's intended loss",
}

JOINT = "Two points with affinity $p = 1$ at $Z = 1$; attraction is proportional to $p$, repulsion to $1/Z$"


@dataclass(frozen=True)
class Entry:
    """Sections, formulas and guide that describe a method."""

    name: str
    section: int
    formulas: tuple[str, ...]
    kernel: str | None = None
    guide: str | None = None


NAMED = {
    "SNE": Entry("Stochastic neighbour embedding", 4, ("5",), "Gaussian"),
    "SymmetricSNE": Entry("Symmetric SNE", 1, ("The normalised joint family", "1"), "Gaussian"),
    "TSNE": Entry("t-SNE", 1, ("The normalised joint family", "1"), "StudentT"),
    "PowerSNE": Entry("p-SNE, a power law", 1, ("The normalised joint family", "1"), "PowerLaw"),
    "GSNE": Entry("g-SNE, α-divergence and power law", 1, ("2", "3"), "RegularizedPowerLaw"),
    "SphericalSNE": Entry("s-SNE, on the sphere", 6, ("The sphere", "1"), "SphericalExit"),
    "UMAP": Entry("UMAP", 16, ("17", "16"), "Membership", "umap.md"),
    "DKLLE": Entry("Double-kernel LLE", 17, ("D1",), "StudentT", "double_kernels.md"),
    "DKPCA": Entry("Double-kernel PCA", 17, ("D2",), "StudentT", "double_kernels.md"),
    "PairEmbedding": Entry("Any loss of two kernels", 17, ("D3",), "Membership", "pair_losses.md"),
    "PCA": Entry("Principal components", 15, ("Gram matrices",), guide="classical.md"),
    "ClassicalMDS": Entry("Classical multidimensional scaling", 15, ("Gram matrices",), guide="classical.md"),
    "Isomap": Entry("Isomap", 15, ("Gram matrices",), guide="classical.md"),
    "LLE": Entry("Locally linear embedding", 15, ("Trace quotients",), guide="classical.md"),
    "LaplacianEigenmaps": Entry("Laplacian eigenmaps", 15, ("Trace quotients",), guide="classical.md"),
    "MDS": Entry("Scaling by stress", 14, ("Stress",), guide="mds.md"),
}
GROUPS = {
    "The SNE family": methods.METHODS,
    "UMAP and double kernels": (methods.UMAP, methods.DKLLE, methods.DKPCA, methods.PairEmbedding),
    "Classical methods": (*methods.CLASSICAL, methods.MDS),
}


def write(folder):
    """Write a page, a map and, for force-based methods, a plot of the force law for every public method."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = data.load("digits")
    for method in methods.ALL:
        page = folder / f"{method.__name__}.md"
        if is_newer(page, Path(inspect.getfile(method)), Path(__file__), equations.MATH):
            continue
        _draw_map(method, digits, folder)
        page.write_text(_page(method, _draw_forces(method, folder)), encoding="utf-8")
    (folder / "index.md").write_text(_index(), encoding="utf-8")


def _page(method, forces):
    name, entry = method.__name__, NAMED[method.__name__]
    title, anchor = equations.section_anchor(entry.section)
    first = " ".join(inspect.getdoc(method).partition("\n\n")[0].split())
    lines = [f"# {name}", "", first, ""]
    lines += [f"![{POINTS} digits by {name}]({name}-map.png)", ""]
    lines += ["```python", "import equipoise as eq", "", f"Y = eq.{name}(random_state=0).fit_transform(X)", "```", ""]
    lines += ["## Formulas", ""]
    for which in entry.formulas:
        lines += ["```math", equations.block(which), "```", ""]
    if entry.kernel:
        k, log_slope = equations.kernel_row(entry.kernel)
        lines += [f"The kernel is `{entry.kernel}`: $k =$ {k}, $k'/k =$ {log_slope}.", ""]
    lines += [f"For the derivation and the notation see [mathematics, {title}](../../math.md#{anchor}).", ""]
    if entry.guide:
        lines += [f"See the guide: [{entry.guide.removesuffix('.md')}](../../{entry.guide}).", ""]
    if forces:
        lines += ["## Forces", "", f"![Attraction and repulsion of {name} over distance]({forces})", ""]
        pair = PAIR.get(name, JOINT)
        lines += [f"{pair}. Made by [`eq.forces`](../api/equipoise.md).", ""]
    members = ["fit", "fit_transform", "transform", "problem", *(["inverse_transform"] if name == "PCA" else [])]
    lines += ["## Reference", "", "```{eval-rst}", f".. autoclass:: equipoise.{name}", ""]
    lines += [f"   .. automethod:: {member}" for member in members] + ["```", ""]
    return "\n".join(lines)


def _index():
    when = "[Which method when](../../start/which_method.md)"
    lines = ["# Methods", "", f"One page per method, with a map of the same {POINTS} digits. {when} compares them.", ""]
    for title, members in GROUPS.items():
        names = [method.__name__ for method in members]
        rows = [f"| [`{name}`]({name}.md) | {NAMED[name].name} |" for name in names]
        lines += [f"## {title}", "", "| method | |", "|---|---|", *rows, ""]
        lines += ["```{toctree}", ":hidden:", "", *names, "```", ""]
    return "\n".join(lines)


def _draw_map(method, digits, folder):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"the neighbour graph has \d+ components")
        Y = method(random_state=0).fit_transform(digits.X[:POINTS])
    figure = eq.plot(Y, digits.labels[:POINTS], names=digits.classes, title=f"{POINTS} digits, {method.__name__}")
    figure.savefig(folder / f"{method.__name__}-map.png", dpi=80)


def _draw_forces(method, folder):
    """Draw the force law and return its file name; None for methods in closed form, which have no pair forces."""
    if not issubclass(method, methods.Embedding):
        return None
    name = f"{method.__name__}-forces.png"
    r = np.linspace(0.02, REACH.get(method.__name__, 5), 400)
    eq.forces(method(), r=r, Z=CROWD.get(method.__name__, 1.0)).figure().savefig(folder / name, dpi=80)
    return name


def _builder_inited(app):
    write(FOLDER)


def setup(app):
    app.connect("builder-inited", _builder_inited)
    return {"parallel_read_safe": True}

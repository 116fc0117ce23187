"""Figures quoted in the README and docs match the results pages, up to the rounding of the quote."""

import re
from functools import cache

import pytest
from support.source_tree import ROOT, skip_module_without

skip_module_without("README.md", "benchmarks/results")
RESULTS = ROOT / "benchmarks" / "results"
TIME, MEMORY = "total, s (range)", "peak memory, MB (of it the fit)"
LATER_FITS = "later fits, s (least to most)"
LATER, FIRST = "later call, s", "first call ever, s"
NEW = "1 point, median of 20 (range)"

IMAGES = {"umap-learn": "peers-umap", "PaCMAP": "peers-umap"}  # pages of 70,000 images
IMAGES |= dict.fromkeys(("equipoise", "openTSNE", "scikit-learn"), "peers")

# Source of each figure: page, heading, row, column by name or number, and optionally which number in the cell.
SOURCES = {
    **{
        f"{tool[:4]}_{data}_{key}": (page, data, tool, column)
        for tool in ("equipoise", "openTSNE", "scikit-learn", "umap-learn", "PaCMAP")
        for data, page in (("digits", "peers-digits"), ("mnist", IMAGES[tool]), ("fashion", IMAGES[tool]))
        for key, column in (("s", TIME), ("kl", "KL"), ("kept", "10-NN kept"), ("wrong", "1-NN error"), ("mb", MEMORY))
    },
    "umap_s": ("umap", "mnist", "equipoise, effective", LATER),
    "umap_first": ("umap", "mnist", "equipoise, effective", FIRST),
    "umap_right": ("umap", "mnist", "equipoise, effective", "10-NN accuracy"),
    "sampled_s": ("umap", "mnist", "equipoise, sampled", LATER),
    "learn_s": ("umap", "mnist", "umap-learn", LATER),
    "learn_first": ("umap", "mnist", "umap-learn", FIRST),
    "learn_right": ("umap", "mnist", "umap-learn", "10-NN accuracy"),
    "new_ms": ("transform", "", "70,000", NEW),
    "many_s": ("transform", "", "70,000", "many", 1),
    "100k_s": ("scaling", "", "100,000", "total, s"),
    "100k_mb": ("scaling", "", "100,000", MEMORY),
    "1m_s": ("scaling", "", "1,000,000", "total, s"),
    "1m_mb": ("scaling", "", "1,000,000", MEMORY),
    "gsne_map": ("kernels", "", "`GSNE(alpha=-0.5, beta=2.5)`", 2),
    "gsne_run": ("kernels", "", "`GSNE(alpha=-0.5, beta=2.5)`", 4),
    "own_map": ("kernels", "", "`SymmetricSNE(kernel=Loop())`", 2),
    "own_run": ("kernels", "", "`SymmetricSNE(kernel=Loop())`", 4),
    "dklle_s": ("double", "", "DK-LLE", 1),
    "gpu_fashion_s": ("gpu", "Whole fits", "fashion, 70,000 × 50", LATER_FITS),
    "gpu_default_s": (
        "gpu_first_fits",
        "Later fits",
        "fashion, default n_iter and stopping",
        LATER_FITS,
    ),
    "gpu_default_before_s": ("gpu", "Whole fits", "fashion, default n_iter and stopping", LATER_FITS),
    "gpu_1m_s": ("gpu", "Whole fits", "mixture, 1,000,000 × 50", LATER_FITS),
    "gpu_10m_s": ("gpu", "Whole fits", "cells, hesc, 10,000,000 × 24", "first fit, s"),
    "gpu_10m_room": ("gpu", "Whole fits", "cells, hesc, 10,000,000 × 24", "GPU memory, GB"),
    "gpu_uncompiled": ("gpu_first_fits", "Later fits", "fashion, 70,000 × 50", "first fit, s"),
    "gpu_first": ("gpu_first_fits", "First fits, Fashion-MNIST", "new, libraries on disk", "fit, s"),
    "gpu_compiled": ("gpu_first_fits", "First fits, Fashion-MNIST", "new", "fit, s"),
    "mds_s": ("mds", "", "equipoise, engine sampled", "seconds"),
    "mds_mb": ("mds", "", "equipoise, engine sampled", "peak memory, MB"),
}

# Sentences of the documents; a suffix % converts a fraction to per cent, and _gb converts megabytes to gigabytes.
QUOTES = [
    (
        "README.md",
        "| {equi_digits_s:.2f} s, KL {equi_digits_kl:.3f} | {open_digits_s:.1f} s, KL {open_digits_kl:.3f} |",
    ),
    ("README.md", "| {scik_digits_s:.1f} s, KL {scik_digits_kl:.3f} |"),
    ("README.md", "| {equi_mnist_s:.1f} s, KL {equi_mnist_kl:.3f} | {open_mnist_s:.0f} s, KL {open_mnist_kl:.3f} |"),
    (
        "README.md",
        "{equi_fashion_s:.1f} s, KL {equi_fashion_kl:.3f} | {open_fashion_s:.0f} s, KL {open_fashion_kl:.3f}",
    ),
    ("README.md", "`UMAP` of MNIST takes {umap_s:.1f} s, umap-learn {learn_s:.0f} s"),
    ("README.md", "a million points take {1m_s:.0f} s"),
    (
        "docs/measured.md",
        "`UMAP` of MNIST takes {umap_s:.1f} s, or {sampled_s:.1f} s with sampling; umap-learn takes {learn_s:.0f} s",
    ),
    ("docs/measured.md", "and {learn_first:.0f} s at its first call"),
    ("docs/measured.md", "new point among 70,000 takes {new_ms:.0f} ms, and 10,000 new points {many_s:.1f} s"),
    ("docs/measured.md", "{1m_s:.0f} seconds against {100k_s:.0f}, and {1m_gb:.1f} GB"),
    (
        "docs/measured.md",
        "takes {gsne_run:.1f} times as long as one of `TSNE`, and one with a kernel written in NumPy {own_run:.1f}",
    ),
    ("docs/measured.md", "on the same map the factors are {gsne_map:.1f} and {own_map:.1f}"),
    ("docs/start/which_method.md", "keeps {equi_mnist_kept:.1f} % of the 10 nearest neighbours; umap-learn"),
    ("docs/start/which_method.md", "umap-learn {umap_mnist_kept:.1f} %, PaCMAP {PaCM_mnist_kept:.1f} %"),
    (
        "docs/start/which_method.md",
        "right class in {umap_right%:.1f} % of MNIST, with umap-learn in {learn_right%:.1f} %",
    ),
    ("docs/start/which_method.md", "in {umap_s:.0f} s compared with {learn_s:.0f} s"),
    ("docs/start/which_method.md", "for {umap_fashion_wrong:.1f} %, in that of t-SNE for {equi_fashion_wrong:.1f} %"),
    ("docs/start/which_method.md", "| `TSNE`, 70,000 × 50 | {equi_mnist_s:.0f} s | {equi_mnist_gb:.1f} GB |"),
    ("docs/start/which_method.md", "| `TSNE`, 1,000,000 × 50 | {1m_s:.0f} s | {1m_gb:.1f} GB |"),
    ("docs/start/which_method.md", "| `UMAP`, 70,000 × 50 | {umap_s:.0f} s |"),
    ("docs/start/which_method.md", "| `DKLLE`, 70,000 × 50 | {dklle_s:.0f} s |"),
    ("docs/start/which_method.md", "| `MDS`, 50,000 × 50, random pairs | {mds_s:.0f} s | {mds_gb:.1f} GB |"),
    ("docs/howto/large_data.md", "| 70,000 | {equi_mnist_s:.0f} s | {equi_mnist_gb:.1f} GB |"),
    ("docs/howto/large_data.md", "| 100,000 | {100k_s:.0f} s | {100k_gb:.1f} GB |"),
    ("docs/howto/large_data.md", "| 1,000,000 | {1m_s:.0f} s | {1m_gb:.1f} GB |"),
    ("docs/howto/new_points.md", "one new point takes {new_ms:.0f} ms, 10,000 take {many_s:.1f} s"),
    ("docs/howto/own_kernel.md", "on 70,000 images take {own_run:.1f} times as long as t-SNE's"),
    ("docs/umap.md", "{umap_s:.1f} s by the loss and {sampled_s:.1f} s by sampling; umap-learn takes {learn_s:.0f} s"),
    ("docs/umap.md", "and {learn_first:.0f} s at its first call"),
    (
        "docs/migration/umap_learn.md",
        "{learn_first:.0f} s for its first call on MNIST and {learn_s:.0f} s for later ones",
    ),
    ("README.md", "One H200 makes the map of Fashion-MNIST in {gpu_default_s:.1f} s"),
    ("docs/gpu.md", "takes {gpu_fashion_s:.2f} s, and {gpu_default_s:.2f} to {gpu_default_before_s:.2f} s with"),
    ("docs/gpu.md", "a million points of a mixture take {gpu_1m_s:.1f} s, and ten million cells"),
    ("docs/gpu.md", "24 columns {gpu_10m_s:.0f} s, and {gpu_10m_room:.0f} GB"),
    ("docs/gpu.md", "took {gpu_compiled:.1f} s with compiled kernels on disk, {gpu_uncompiled:.1f} s without"),
    ("docs/gpu.md", "without, and {gpu_first:.0f} s if the"),
    ("docs/migration/umap_learn.md", "Equipoise {umap_first:.1f} and {umap_s:.1f} s"),
]


@cache
def figure(name):
    """Return a figure from its results page."""
    page, heading, row, column, which = (*SOURCES[name], 0)[:5]
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    if heading:
        text = next(part for part in re.split(r"^## ", text, flags=re.MULTILINE) if part.startswith(heading))
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        columns, _, *rows = ([cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines())
        cells = next((cells for cells in rows if cells[0] == row), None)
        if cells is not None:
            cell = cells[column if isinstance(column, int) else columns.index(column)]
            return float(re.findall(r"\d+(?:\.\d+)?", cell.replace(",", ""))[which])
    raise AssertionError(f"{page}.md has no row {row!r}")


def format_figure(match):
    """Return the figure of a placeholder, formatted as in the quote."""
    name, form = match.groups()
    if name.endswith("%"):
        return format(100 * figure(name[:-1]), form)
    return format(figure(name[:-2] + "mb") / 1000 if name.endswith("_gb") else figure(name), form)


@pytest.mark.parametrize(("document", "words"), QUOTES)
def test_quoted_figures_match_results_pages(document, words):
    text = " ".join((ROOT / document).read_text(encoding="utf-8").split())
    assert re.sub(r"\{([\w%]+):([.\w]+)\}", format_figure, words) in text

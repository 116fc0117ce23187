"""The pages of docs/: their Python blocks run in order, and the extensions that generate the site work."""

import importlib
import json
import re
import warnings

import numpy as np
import pytest
from support.source_tree import ROOT, skip_module_without

import equipoise
from equipoise import methods

skip_module_without("docs", "README.md")
DOCS = ROOT / "docs"
RUN = [page for folder in ("start", "howto", "migration") for page in sorted((DOCS / folder).glob("*.md"))]
RUN += sorted(DOCS.glob("geometry.md"))


@pytest.fixture
def extension(monkeypatch):
    """Return a function that imports an extension of the site without Sphinx."""
    monkeypatch.syspath_prepend(str(DOCS))
    return lambda name: importlib.import_module(f"extensions.{name}")


def python_blocks(page):
    """Yield the Python blocks of a page with the lines on which they begin."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"```python\n(.*?)```", text, flags=re.DOTALL):
        yield text.count("\n", 0, found.start(1)), found.group(1)


@pytest.mark.parametrize("page", RUN, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_python_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    blocks = list(python_blocks(page))
    uses_scanpy = any("import scanpy" in block for _, block in blocks)
    if uses_scanpy:
        pytest.importorskip("scanpy", reason="scanpy is not installed")
    with warnings.catch_warnings():
        if uses_scanpy:
            warnings.simplefilter("ignore")  # of scanpy and its dependencies
        for line, block in blocks:  # each continues the previous one; errors name the line of the page
            exec(compile("\n" * line + block, str(page), "exec"), namespace)


def test_errors_in_the_guide_to_geometries_are_those_raised():
    text, X = (DOCS / "geometry.md").read_text(encoding="utf-8"), np.random.default_rng(0).normal(size=(60, 5))
    torus = {"geometry": "torus"}
    for method in (
        equipoise.TSNE(**torus, engine="sampled"),
        equipoise.TSNE(4, **torus, engine="grid"),
        equipoise.UMAP(**torus, engine="negative_sampling"),
        equipoise.TSNE(geometry="sphere", engine="negative_sampling"),
        equipoise.TSNE(3, geometry="hyperbolic"),
        equipoise.TSNE(**torus, g=np.eye(2)),
        equipoise.Parametric(equipoise.TSNE(**torus)),
    ):
        with pytest.raises(ValueError, match="use") as error:
            method.fit(X)
        assert f"`{error.value}`" in text
    with pytest.raises(ValueError, match="too large") as error:
        equipoise.TSNE(geometry=equipoise.geometry.Torus(1e6)).fit(X)
    assert f"    {error.value}\n" in text
    with pytest.warns(UserWarning, match="too small") as warned:
        equipoise.geometry.Torus((0.01, 0.01)).check(2, 1.0)
    assert f"    {warned[0].message}\n" in text
    with pytest.raises(ValueError, match="superimposes") as error:
        equipoise.sweep(equipoise.TSNE(**torus), X, {"perplexity": [5, 10]})
    assert f"`{error.value}`" in text


def test_tutorial_output_matches_its_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page, namespace = DOCS / "start" / "tutorial.md", {}
    for _, block in list(python_blocks(page))[:6]:  # up to the report
        exec(block, namespace)
    printed, text = capsys.readouterr().out, page.read_text(encoding="utf-8")
    for line in ("proline", "magnesium"):
        assert line in printed
    for number in ("trustworthiness", "continuity", "neighbours kept"):  # within 2 %: rounding differs between machines
        (said,) = re.findall(rf"^{number} +([\d.]+)", text, flags=re.MULTILINE)
        (seen,) = re.findall(rf"^{number} +([\d.]+)", printed, flags=re.MULTILINE)
        assert float(seen) == pytest.approx(float(said), rel=0.02)


def test_every_method_has_a_page_with_its_formulas(extension):
    pages, equations = extension("method_pages"), extension("equations")
    assert set(pages.NAMED) == {method.__name__ for method in methods.ALL}
    assert [method for group in pages.GROUPS.values() for method in group] == list(methods.ALL)
    for method in methods.ALL:
        text = pages._page(method, None)
        assert text.count("```math") == len(pages.NAMED[method.__name__].formulas)
        assert f".. autoclass:: equipoise.{method.__name__}" in text
    assert r"\tag{1}" in equations.block("1") and "operatorname{tr}" in equations.block("Stress")
    assert equations.kernel_row("Gaussian") == ("$e^{-d^2}$", "$-1$")
    assert equations.section_anchor(16) == ("16. UMAP", "16-umap")
    with pytest.raises(ValueError, match="no equation, paragraph or section 'nothing'"):
        equations.block("nothing")


def test_api_reference_lists_every_public_name(extension):
    pages = extension("api_pages")
    for name in pages.MODULES:
        module = importlib.import_module(name)
        text = pages.page(module)
        for public in pages.public_names(module):
            assert f"{public}`" in text, f"{name}.{public}"
    assert {"Graph", "nearest_neighbors"} <= set(pages.public_names(equipoise.neighbors))
    assert {"Kernel", "StudentT"} <= set(pages.public_names(equipoise.kernels))


def test_numpydoc_is_converted_to_rest(extension):
    to_rest = extension("docstrings").to_rest
    text = ["E = |a|*b_c for `X`.", "", "    E = Σ_i x_i*", ""]
    lines = [*text, "Parameters", "----------", "a, b : first", "    second"]
    assert to_rest(lines) == [
        "E = \\|a\\|\\*b\\_c for `X`.", "",
        "", "::", "", "    E = Σ_i x_i*", "", "",
        "", ".. rubric:: Parameters", "",
        "``a``, ``b``", "    first", "    second",
    ]  # fmt: skip
    assert to_rest([">>> 1 + 1", "2"])[1:3] == [">>> 1 + 1", "2"]


def test_formulas_are_rendered_as_mathml(extension):
    pytest.importorskip("latex2mathml")
    mathml = extension("mathml")
    text = mathml.display(r"E = \lVert y \rVert \tag{7'}")
    assert "<math" in text and "(7&#x27;)" in text and "tag" not in text and 'form="postfix"' in text
    with pytest.raises(ValueError, match=r"\\nothing is unknown to latex2mathml"):
        mathml.inline(r"a \nothing b")


def test_published_versions_are_listed_from_new_to_old(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    versions = importlib.import_module("versions")
    with pytest.raises(SystemExit, match="has no folder with docs"):
        versions.main(tmp_path)
    for name in ("0.9.2", "latest", "0.10.0", "draft"):
        (tmp_path / name / "docs").mkdir(parents=True)
        (tmp_path / name / "docs" / "index.html").touch()
    (tmp_path / "0.11.0").mkdir()  # nothing in it
    versions.main(tmp_path)
    assert json.loads((tmp_path / "versions.json").read_text()) == ["latest", "0.10.0", "0.9.2"]
    assert 'url=0.10.0/"' in (tmp_path / "index.html").read_text()


def test_example_links_redirect_to_the_gallery(extension):
    redirect = extension("links").redirect
    assert redirect("[a](../examples/flow.py)", "docs/classical") == "[a](../docs/generated/gallery/flow.md)"
    assert redirect("[a](examples) [b](examples/flow.py)", "README") == (
        "[a](docs/generated/gallery/index.md) [b](docs/generated/gallery/flow.md)"
    )
    assert redirect("[a](../benchmarks/results/mds.md)", "docs/mds") == "[a](../benchmarks/results/mds.md)"

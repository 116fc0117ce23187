"""The installed package and the files of the project."""

import ast
import importlib.metadata
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.source_tree import ROOT, needs

import equipoise
from equipoise import _core

README = ROOT / "README.md"
MATH = ROOT / "docs" / "math.md"
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "generated" not in page.parts]
COMMANDS = ("pip install . && equipoise embed digits", 'pip install ".[test]" && pytest')
GENERATED = {"build", "dist", "__pycache__", "generated"}


def project_files():
    """Yield every text file of the project except build products and caches."""
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") and part not in (".ci", ".gitignore") for part in parts)
        built = any(part in GENERATED or part.endswith(".egg-info") for part in parts)
        if path.is_file() and not hidden and not built and path.suffix not in (".png", ".so", ".pyd"):
            yield path


@needs("CITATION.cff", "CHANGELOG.md", "CMakeLists.txt")
def test_version_is_defined_once():
    assert re.fullmatch(r"\d+\.\d+\.\d+", equipoise.__version__)
    assert importlib.metadata.version("equipoise") == equipoise.__version__
    for name in ("pyproject.toml", "CMakeLists.txt", "CITATION.cff"):
        assert equipoise.__version__ not in (ROOT / name).read_text(encoding="utf-8"), name
    assert f"## [{equipoise.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_public_names_exist_and_are_documented():
    for name in equipoise.__all__:
        assert getattr(equipoise, name).__doc__, name


def test_py_typed_is_installed():
    assert (Path(equipoise.__file__).parent / "py.typed").is_file()


def test_core_stub_lists_every_public_name():
    tree = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    named |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public and public == named
    (kernel,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Kernel")
    makers = {node.name for node in kernel.body if isinstance(node, ast.FunctionDef)}
    assert makers == {name for name in dir(_core.Kernel) if not name.startswith("_")}


def test_import_loads_no_heavy_package():
    heavy = ("matplotlib", "bokeh", "tqdm", "faiss", "torch")
    code = f"import sys, equipoise; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_package_is_pickled_by_name():
    """Ray, Spark and Dask pickle the modules that a function uses."""
    assert pickle.loads(pickle.dumps(equipoise)) is equipoise


@needs("README.md")
def test_readme_shows_the_two_commands():
    blocks = re.findall(r"```sh\n(.*?)\n```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert tuple(block for block in blocks if block.startswith("pip install")) == COMMANDS


@needs(".ci")
def test_ci_runs_the_readme_commands():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert set(COMMANDS) <= set(lines)


@needs("README.md")
def test_readme_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    namespace = {}
    for block in blocks:  # each block continues the previous one
        exec(compile(block.replace("[:500]", "[:80]"), "README.md", "exec"), namespace)
    assert namespace["Y"].shape == (80, 2) and namespace["new"].shape == (10, 2)
    assert (tmp_path / "map.png").stat().st_size > 10_000 and (tmp_path / "digits.eqz").exists()


@needs("README.md", "docs")
@pytest.mark.parametrize(
    "page", [README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *PAGES], ids=lambda page: page.name
)
def test_links_are_valid(page):
    targets = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    for target in targets:
        assert target.startswith("https://") or (page.parent / target).exists(), target


@needs("docs", "src")
def test_cited_equations_exist_in_math_md():
    text = MATH.read_text(encoding="utf-8")
    equations, sections = set(re.findall(r"\\tag\{(.+?)\}", text)), set(re.findall(r"^## (\d+)\.", text, re.MULTILINE))
    cited = 0
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".py", ".hpp", ".cpp"):
            continue
        code = path.read_text(encoding="utf-8")
        for kind, number in re.findall(r"docs/math\.md,? (eq\.|section) \(?([A-Z]?[\d']+)", code):
            assert number in (equations if kind == "eq." else sections), f"{path.name} cites {kind} {number}"
            cited += 1
        for title in re.findall(r'docs/math\.md, "(.+?)"', code):
            assert f"**{title}.**" in text, f"{path.name} cites {title!r}"
            cited += 1
    assert cited >= 10


def test_no_file_contains_an_absolute_path():
    absolute = re.compile(r"(?<![\w.:/])(?:/(?:home|Users|root|work|mnt|private)/\w|[A-Z]:\\Users)")
    for path in project_files():
        found = absolute.search(path.read_text(encoding="utf-8", errors="replace"))  # saved files are binary
        assert found is None, f"{path.relative_to(ROOT)}: {found and found.group()}"

"""The layers of the package, and limits on the length of files, functions and signatures."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from support.architecture import LAYERS, Package
from support.source_tree import ROOT, needs

import equipoise as eq

pytestmark = needs("src")
SOURCE = ROOT / "src" / "equipoise"
RULES = ("unknown", "upward", "cycles", "repeated_names", "private_names")
PUBLIC_SIGNATURES = {
    "data.read.read",
    "evaluate.compare.compare",
    "evaluate.report.evaluate",
    "views.notebook.widget.widget",
    "views.page.page",
    "views.plot.plot",
    "studio.server.serve.serve",
}  # public functions whose keyword arguments are part of the interface
MAX_FILES_OF_A_FIT = 28


@pytest.fixture(scope="module")
def package():
    return Package(SOURCE)


@pytest.mark.parametrize("rule", RULES)
def test_package_obeys_layer_rules(package, rule):
    assert getattr(package, rule)() == []


def test_files_functions_and_signatures_are_short(package):
    assert package.long_files(400) == []
    assert package.long_functions(60) == []
    long = package.long_signatures(arguments=7, callables=2)
    assert [found for found in long if found.partition(":")[0] not in PUBLIC_SIGNATURES] == []


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "tests"])
def test_files_and_functions_outside_the_package_are_short(folder):
    scripts = Package(ROOT / folder)
    assert scripts.long_files(400) == []
    assert scripts.long_functions(60) == []


def make_package(folder, **files):
    """Write a package with these modules; "__" in a name separates folders."""
    root = folder / "equipoise"
    root.mkdir()
    (root / "__init__.py").write_text("")
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return Package(root)


@pytest.mark.parametrize(
    ("rule", "files", "expected"),
    [
        ("upward", {"kernels": "from .methods import sne", "methods__sne": ""}, "kernels:1 imports methods.sne"),
        ("upward", {"kernels": "def f():\n    from .views import plot", "views__plot": ""}, "kernels:2 imports views"),
        ("upward", {"kernels": "import equipoise.cli.embed", "cli__embed": ""}, "kernels:1 imports cli.embed"),
        ("upward", {"kernels": "from equipoise.cli import embed", "cli__embed": ""}, "kernels:1 imports cli.embed"),
        ("cycles", {"cli__a": "from . import b", "cli__b": "def f():\n    from .a import g"}, "cli.a <-> cli.b"),
        ("unknown", {"helpers": ""}, "helpers"),
        ("repeated_names", {"cli__twice": "", "views__twice": ""}, "twice: cli/twice.py, views/twice.py"),
        ("private_names", {"kernels": "_x = 1", "geometry": "from .kernels import _x"}, "imports _x from kernels"),
        ("private_names", {"kernels": "class K:\n    def _f(self): ...", "cli__a": "K()._f()"}, "cli.a:1 uses K()._f"),
    ],
)
def test_violations_are_detected(tmp_path, rule, files, expected):
    found = getattr(make_package(tmp_path, **files), rule)()
    assert len(found) == 1
    assert expected in found[0]


def test_valid_imports_pass(tmp_path):
    package = make_package(
        tmp_path,
        kernels="",
        methods__sne="from ..kernels import Gaussian\nfrom . import base\nclass A(base.B):\n    x = self._private",
        methods__base="from __future__ import annotations\nif TYPE_CHECKING:\n    from ..cli import embed",
        cli__embed="from ..methods.sne import TSNE",
    )
    assert [getattr(package, rule)() for rule in RULES] == [[]] * len(RULES)


def test_long_functions_files_and_signatures_are_detected(tmp_path):
    body = "\n".join(f"    x{i} = {i}" for i in range(59))
    package = make_package(
        tmp_path,
        kernels=f"def long():\n{body}\n",
        geometry="def wide(a, b, c, d, e, f, g, h): ...\ndef free(f: Callable[[], int], g: Callable[[], int]): ...",
    )
    assert package.long_functions(60) == ["kernels.long: 60 lines"]
    assert package.long_functions(61) == []
    assert package.long_files(59) == ["kernels.py: 60 lines"]
    assert package.long_signatures(7, 1) == [
        "geometry.wide: 8 arguments, 0 callables",
        "geometry.free: 2 arguments, 2 callables",
    ]


def test_docstrings_do_not_count_as_lines_of_a_function(tmp_path):
    text = "def documented():\n" + '    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * 58
    package = make_package(tmp_path, kernels=text, geometry="async def long():\n" + "    x = 1\n" * 59)
    assert package.long_functions(60) == ["geometry.long: 60 lines"]
    assert package.long_functions(59) == ["geometry.long: 60 lines", "kernels.documented: 59 lines"]


def test_callables_behind_aliases_and_protocols_are_counted(tmp_path):
    package = make_package(
        tmp_path,
        _types="from collections.abc import Callable\nCallback = Callable[[int], int]\nMany = list[Callback]",
        kernels="class Call(Protocol):\n    def __call__(self): ...\nclass Kernel:\n    def __call__(self): ...",
        geometry="from ._types import Callback, Many\ndef aliased(f: Callback, g: Many, h: int): ...",
        procrustes="from .kernels import Call, Kernel\ndef protocol(f: Call, k: Kernel, g: 'int'): ...",
        progress="def other(f: Callback): ...",  # another module's alias, not imported
    )
    assert package.long_signatures(7, 0) == [
        "geometry.aliased: 3 arguments, 2 callables",
        "procrustes.protocol: 3 arguments, 1 callables",
    ]
    assert package.long_signatures(7, 2) == []


def test_contributing_lists_layers_in_order():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page[page.index("| layer |") :].split("\n\n")[0].splitlines()[2:]
    rows = [re.fullmatch(r"\| `(?P<entry>\w+)(?:\.py|/)?` \| (?P<text>.*) \|", line) for line in table]
    assert {row["entry"]: row["text"] for row in rows} == LAYERS
    assert [row["entry"] for row in rows] == list(LAYERS)


@pytest.mark.parametrize("n", [3000, 5000])  # the points of the larger map are sorted for locality
def test_fit_executes_few_files(n):
    """TSNE().fit on the CPU executes code from at most MAX_FILES_OF_A_FIT files of the package."""
    files = set()

    def record_file(frame, event, argument):
        if event == "call" and (path := Path(frame.f_code.co_filename)).is_relative_to(Path(eq.__file__).parent):
            files.add(path)

    X = np.random.default_rng(0).standard_normal((n, 20))
    method = eq.TSNE(n_iter=20, random_state=0).fit(X)  # imports what a fit needs
    before = sys.getprofile()
    sys.setprofile(record_file)
    try:
        method.fit(X)
    finally:
        sys.setprofile(before)
    assert 10 < len(files) <= MAX_FILES_OF_A_FIT, sorted(path.name for path in files)

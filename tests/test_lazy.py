"""Packages with a stub import their names when they are first used, and show the same names as if they had not."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise as eq
import equipoise.evaluate  # a submodule with the name of a function

PACKAGES = ("equipoise", "equipoise.data", "equipoise.methods", "equipoise.spaces")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a function `shape` in a submodule `shape`, a submodule `size`, and a value of another module."""
    root = tmp_path / "small_package"
    (root / "inner").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "values.py").write_text("VALUE = 5\n")
    inner = "from equipoise._lazy import import_lazily\n__all__ = import_lazily(__name__)\n"
    (root / "inner" / "__init__.py").write_text(inner)
    stub = "from . import size\nfrom ..values import VALUE\nfrom .shape import shape\n"
    (root / "inner" / "__init__.pyi").write_text(stub)
    (root / "inner" / "shape.py").write_text("from . import size\ndef shape():\n    return size.SIZE\n")
    (root / "inner" / "size.py").write_text("SIZE = 3\n")
    (root / "inner" / "unnamed.py").write_text("raise OSError('broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("small_package.inner")
    for name in [name for name in sys.modules if name.partition(".")[0] == "small_package"]:
        del sys.modules[name]


def test_names_are_imported_when_they_are_used(package):
    assert package.__all__ == ["VALUE", "shape", "size"]
    assert set(package.__all__) < set(dir(package)) and not set(package.__all__) & vars(package).keys()
    assert package.VALUE == 5 and "small_package.inner.shape" not in sys.modules
    assert package.shape() == 3
    assert vars(package)["shape"] is package.shape


def test_a_submodule_does_not_hide_the_function_of_the_same_name(package):
    module = importlib.import_module("small_package.inner.shape")
    assert package.shape is module.shape
    assert importlib.import_module("small_package.inner.size") is package.size


def test_a_missing_name_and_a_broken_submodule_raise_their_own_errors(package):
    with pytest.raises(AttributeError, match=r"module 'small_package\.inner' has no attribute 'absent'"):
        _ = package.absent
    with pytest.raises(OSError, match="broken"):
        _ = package.unnamed


@pytest.mark.parametrize("name", PACKAGES)
def test_the_stub_exports_what_it_imports_and_every_name_exists(name):
    module = importlib.import_module(name)
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    (exported,) = (ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    assert sorted(exported) == module.__all__
    for public in module.__all__:
        assert getattr(module, public) is not None


def test_submodules_are_listed():
    assert {"data", "methods", "studio", "SNE"} <= set(dir(eq))
    assert not {"_core", "_lazy", "__main__"} & set(dir(eq)) - vars(eq).keys()


def test_a_missing_stub_raises(package):
    Path(package.__file__).with_suffix(".pyi").unlink()
    with pytest.raises(
        ImportError, match=r"the stub __init__\.pyi of small_package\.inner is missing .* package the \.pyi"
    ):
        importlib.reload(package)


def test_functions_with_the_name_of_a_submodule_are_functions():
    assert eq.evaluate is sys.modules["equipoise.evaluate"].evaluate
    assert eq.data.read is sys.modules["equipoise.data.read"].read
    assert eq.problems is sys.modules["equipoise.problems"]  # a submodule that the stub does not name


@pytest.mark.parametrize("module", ["equipoise", "equipoise.accel"])
def test_importing_the_package_alone_imports_no_dependency(module):
    code = f"import {module}, sys; print({{'numpy', 'scipy', 'sklearn', 'equipoise._core'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"

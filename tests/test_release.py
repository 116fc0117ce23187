"""The configuration of releases: platforms and tags of wheels, pinned build requirements, the conda recipe."""

import fnmatch
import importlib.metadata
import itertools
import json
import re
import sys
import sysconfig
from pathlib import Path

import pytest
from support.source_tree import ROOT, needs

from equipoise import _core

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")
PYTHON = f"cp3{sys.version_info.minor}"
clone = needs(".github")


def read_yaml(path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def name_and_bound(requirement):
    """Split a requirement such as "numpy>=1.25" or "numpy >=1.25"."""
    return tuple(re.fullmatch(r"([\w.-]+)\s*(?:>=)?([\w.]*)", requirement).groups())


def test_tag_of_the_installed_wheel_names_this_python_or_the_stable_abi():
    tag = importlib.metadata.distribution("equipoise").read_text("WHEEL").partition("Tag: ")[2].split()[0]
    if sys.version_info >= (3, 12) and GIL:
        expected = "cp312-abi3-"
        assert Path(_core.__file__).name in ("_core.abi3.so", "_core.pyd")
    else:
        expected = f"{PYTHON}-{PYTHON}-" if GIL else f"{PYTHON}-{PYTHON}t-"
    assert tag.startswith(expected), tag


@pytest.mark.skipif(GIL, reason="this Python has a global interpreter lock")
def test_importing_the_core_does_not_enable_the_gil():
    assert not sys._is_gil_enabled()


@pytest.mark.parametrize(
    ("tag", "built"),
    [
        *((f"cp3{minor}-{platform}", minor in (10, 11, 12)) for minor, platform in itertools.product(
            range(9, 16), ("manylinux_x86_64", "manylinux_aarch64", "macosx_arm64", "macosx_x86_64", "win_amd64"))),
        ("cp314t-win_amd64", True),
        ("cp313t-win_amd64", False),
        ("cp312-win32", False),
        ("cp312-manylinux_i686", False),
        ("cp312-musllinux_x86_64", False),
    ],
)  # fmt: skip
def test_wheels_are_built_for(tag, built):
    options = PYPROJECT["tool"]["cibuildwheel"]
    chosen = any(fnmatch.fnmatch(tag, each) for each in options["build"])
    assert (chosen and not any(fnmatch.fnmatch(tag, each) for each in options["skip"])) == built


def test_wheels_of_the_stable_abi_begin_with_the_python_that_builds_them():
    assert PYPROJECT["tool"]["scikit-build"]["wheel"]["py-api"] == "cp312"
    assert "cp312-*" in PYPROJECT["tool"]["cibuildwheel"]["build"]


@needs("CMakeLists.txt")
def test_core_is_compiled_for_the_stable_abi_and_for_threads_without_the_gil():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    (options,) = re.findall(r"nanobind_add_module\(_core ([^$]*)", text)
    assert {"STABLE_ABI", "FREE_THREADED", "NB_STATIC"} <= set(options.split())


@clone
def test_workflow_builds_on_five_platforms_and_publishes_only_tags():
    jobs = read_yaml(".github/workflows/wheels.yml")["jobs"]
    runners = {(each["os"].split("-")[0], each["archs"]) for each in jobs["wheels"]["strategy"]["matrix"]["include"]}
    expected = {("ubuntu", "x86_64"), ("ubuntu", "aarch64"), ("windows", "AMD64")}
    assert runners == expected | {("macos", "arm64"), ("macos", "x86_64")}
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}


@clone
def test_release_is_built_by_pinned_versions_that_satisfy_the_bounds():
    version = pytest.importorskip("packaging.version", reason="packaging is not installed").Version
    text = (ROOT / ".github" / "build-requirements.txt").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"^(?=[\w-]+==)", text, flags=re.MULTILINE) if not entry.startswith("#")]
    pinned = {entry.partition("==")[0]: version(re.split(r"[\s;]", entry.partition("==")[2])[0]) for entry in entries}
    assert all("--hash=sha256:" in entry for entry in entries)
    for name, bound in map(name_and_bound, PYPROJECT["build-system"]["requires"]):
        assert pinned[name] >= version(bound), name


@clone
def test_conda_recipe_has_the_requirements_and_bounds_of_the_project():
    recipe = read_yaml("recipe/recipe.yaml")
    conda_names = {"matplotlib": "matplotlib-base"}
    needed = {name_and_bound(each) for each in PYPROJECT["project"]["dependencies"]}
    listed = {name_and_bound(each) for each in recipe["requirements"]["run"]}
    assert listed == {("python", "")} | {(conda_names.get(name, name), bound) for name, bound in needed}
    build = {name_and_bound(each) for each in PYPROJECT["build-system"]["requires"]}
    assert build <= {name_and_bound(each) for each in recipe["requirements"]["host"]}
    assert recipe["about"]["license"] == PYPROJECT["project"]["license"]


@clone
def test_containers_use_the_documented_commands():
    assert "--require-hashes -r .github/build-requirements.txt" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    settings = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for command in ("pip install scikit-build-core nanobind cmake ninja", "pip install --no-build-isolation -e"):
        assert command in settings["postCreateCommand"]
        assert command in contributing

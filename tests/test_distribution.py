"""The source distribution and the wheel: what they contain, and how the build fails without a suitable compiler."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.distribution import MAX_BYTES, check_sdist, check_wheel
from support.source_tree import ROOT, needs

clone = needs(".git")  # without it, the list of files would not follow .gitignore
WHEEL = ["equipoise/__init__.py", "equipoise/py.typed", "equipoise/views/page.html", "equipoise/_core.pyi"]
WHEEL += ["equipoise/_core.cpython-311-x86_64-linux-gnu.so", "equipoise-0.1.0.dist-info/METADATA"]


def write_wheel(path, names, size=10):
    with zipfile.ZipFile(path, "w") as wheel:
        for name in names:
            wheel.writestr(name, os.urandom(size))
    return path


def build(hook, folder, settings="None"):
    """Run a hook of the build backend in the root of the project and return the file it wrote."""
    code = f"from scikit_build_core.build import {hook}; {hook}({str(folder)!r}, {settings})"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


@pytest.fixture
def backend():
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")


def test_wheel_with_only_the_package_is_accepted(tmp_path):
    check_wheel(write_wheel(tmp_path / "a.whl", WHEEL))
    check_wheel(write_wheel(tmp_path / "b.whl", ["equipoise/", *WHEEL]))  # auditwheel adds entries for folders


@pytest.mark.parametrize(
    "name",
    [
        *(
            "tests/test_kernels.py",
            "equipoise/_core/ops.cpp",
            "equipoise/types.hpp",
            "CMakeLists.txt",
            "data/mnist.npy",
        ),
        *("equipoise/libgomp.so", "equipoise/data/table.csv", "equipoise/__pycache__/a.pyc", "other/__init__.py"),
    ],
)
def test_other_file_in_wheel_is_reported(tmp_path, name):
    with pytest.raises(AssertionError, match=re.escape(f"contains ['{name}']")):
        check_wheel(write_wheel(tmp_path / "a.whl", [*WHEEL, name]))


def test_wheel_needs_one_compiled_core_and_a_bounded_size(tmp_path):
    with pytest.raises(AssertionError, match="0 compiled modules"):
        check_wheel(write_wheel(tmp_path / "a.whl", WHEEL[:4]))
    with pytest.raises(AssertionError, match="2 compiled modules"):
        check_wheel(write_wheel(tmp_path / "b.whl", [*WHEEL, "equipoise/_core.abi3.so"]))
    with pytest.raises(AssertionError, match="6,000,000 are allowed"):
        check_wheel(write_wheel(tmp_path / "c.whl", WHEEL, MAX_BYTES // len(WHEEL)))


@clone
@pytest.mark.slow
def test_sdist_holds_sources_and_no_build_products(tmp_path, backend):
    path = build("build_sdist", tmp_path)
    check_sdist(path)
    with tarfile.open(path) as sdist:
        packed = {member.name.partition("/")[2] for member in sdist.getmembers()}
    sources = [*ROOT.glob("src/_core/**/*.?pp"), *ROOT.glob("src/equipoise/**/*.py"), *ROOT.glob("tests/**/*.py")]
    assert {source.relative_to(ROOT).as_posix() for source in sources} <= packed


@clone
@pytest.mark.slow
def test_wheel_packs_every_file_of_the_package(tmp_path, backend):
    without_core = {"wheel.cmake": "false", "wheel.py-api": ""}  # which takes minutes to compile
    path = build("build_wheel", tmp_path, without_core)
    with zipfile.ZipFile(path, "a") as wheel:
        packed = set(wheel.namelist())
        for name in WHEEL[3:5]:
            wheel.writestr(name, b"")
    check_wheel(path)
    package = ROOT / "src" / "equipoise"
    sources = {f"equipoise/{source.relative_to(package).as_posix()}" for source in package.rglob("*.[pjh][yst]*")}
    assert {name for name in sources if "_core." not in name and not name.endswith(".pyc")} <= packed


def test_every_requirement_has_a_lower_bound():
    requirements = importlib.metadata.requires("equipoise")
    assert requirements
    for requirement in requirements:
        name = requirement.partition(";")[0].strip()
        assert re.fullmatch(r"[\w.-]+(>=|==)[\w.]+|equipoise\[[\w,]+\]", name), requirement


def configure(folder, compiler):
    """Run CMake with a compiler and return its output without line breaks, after checking that it failed."""
    nanobind = Path(importlib.util.find_spec("nanobind").origin).parent / "cmake"
    command = ["cmake", "-S", ROOT, "-B", folder / "build", "-G", "Ninja", f"-Dnanobind_DIR={nanobind}"]
    command += [f"-DPython_EXECUTABLE={sys.executable}"]
    environment = {**os.environ, "CXX": str(compiler)}
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)
    assert completed.returncode != 0
    return " ".join(completed.stderr.split())


@pytest.fixture
def cmake():
    pytest.importorskip("nanobind", reason="nanobind is not installed")
    if missing := [tool for tool in ("cmake", "ninja", "g++") if shutil.which(tool) is None]:
        pytest.skip(f"{', '.join(missing)} not found")


@needs("CMakeLists.txt")
@pytest.mark.parametrize("compiler", ["missing-g++", "false"])
def test_missing_or_broken_compiler_is_named_with_a_remedy(tmp_path, cmake, compiler):
    path = shutil.which(compiler) or tmp_path / compiler
    output = configure(tmp_path, path)
    for part in ("no working C++ compiler was found", str(path), "apt install g++", "set CXX to its path"):
        assert part in output


@needs("CMakeLists.txt")
@pytest.mark.slow
def test_old_compiler_is_named_with_a_remedy(tmp_path, cmake):
    compiler = tmp_path / "old-g++"  # g++, but no vector extensions: those came with version 12
    compiler.write_text(
        '#!/bin/sh\nfor file; do\n  case $file in *.cxx) grep -q shufflevector "$file" && exit 1;; esac\ndone\n'
        'exec g++ "$@"\n'
    )
    compiler.chmod(0o755)
    output = configure(tmp_path, compiler)
    for part in ("Equipoise needs a C++17 compiler with", "g++ 12 or newer", str(compiler), "CXX=g++-12 pip install"):
        assert part in output

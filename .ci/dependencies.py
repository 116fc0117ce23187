#!/usr/bin/env python3
"""Run tests in a clean virtual environment with the lowest or the newest versions of every dependency.

    python .ci/dependencies.py lowest                      # the quick subset
    python .ci/dependencies.py newest --all                # every test, with PyTorch and the packages of the site
    python .ci/dependencies.py lowest -- tests/cli -k read # arguments for pytest

The package is installed as a user would get it: the source distribution is built, then a wheel from it without an index
and without build isolation, and the files of both are checked. `--wheel` takes a wheel, or a folder with one for this
Python. It is installed and tested with no compiler on the path. `lowest` pins each requirement of pyproject.toml to its
lower bound or, where that has no wheel for this Python, to the first version with one; their own dependencies are the
newest that fit. Needs Python 3.11 or newer and, for `lowest`, uv; `--python python3.10` tests with another one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.distribution import check_sdist, check_wheel  # noqa: E402

PATH = os.environ["PATH"]
QUICK = ["tests/data", "tests/cli/test_cli.py", "tests/methods/test_methods.py", "tests/methods/test_umap.py"]
QUICK += ["tests/methods/test_mds.py", "tests/methods/test_classical.py", "tests/views/test_plot.py"]
QUICK += ["-m", "not slow and not browser and not trials", "-k", "not Parametric"]  # which needs PyTorch
COMPILER = re.compile(r"(^|-)(cc|gcc|clang|([cg]|clang)\+\+|c[89]9|cpp|gfortran|ld|as|zig)(-|$|\.)|^(ccache|python)")
OPTIONAL = ("anndata", "bokeh", "dask", "pandas", "polars", "potpourri3d", "zarr")
# Deprecations inside old packages, raised by newer packages that they depend on, say nothing about this one.
OLD_PACKAGES = ["-W", "default::DeprecationWarning", "-W", "default::PendingDeprecationWarning"]


def lowest(requirement: str) -> str:
    """Return the requirement pinned to its lower bound; a version that is already pinned is kept."""
    matched = re.fullmatch(r"([\w.-]+)(>=|==)([\w.]+)(;.*)?", requirement)
    if matched is None:
        raise ValueError(f"{requirement!r} in pyproject.toml has no lower bound; write name>=version")
    return f"{matched[1]}=={matched[3]}{matched[4] or ''}"


def requirements(project: dict, everything: bool) -> list[str]:
    """Return what the package and its tests need. The bound of the extra `gpu` is not tested: it would bring CUDA."""
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"]]
    for name, packages in extras.items():
        if name != "gpu" and (name != "docs" or everything):
            needed += packages
    left_out = {"equipoise"} if everything else {"equipoise", "torch"}
    return sorted({each for each in needed if re.split(r"[^\w.-]", each)[0] not in left_out})


def lowest_with_wheels(python: Path, needed: list[str]) -> list[str]:
    """Return the requirements pinned to the lowest versions that fit together and have wheels for this Python."""
    command = ["uv", "pip", "compile", "--quiet", "--resolution", "lowest-direct", "--only-binary", ":all:"]
    command += ["--no-annotate", "--no-header", "--python", str(python), "-"]
    found = subprocess.run(command, input="\n".join(needed), text=True, stdout=subprocess.PIPE, check=True).stdout
    names = {canonical_name(each) for each in needed}
    return [line for line in found.splitlines() if canonical_name(line) in names]


def canonical_name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-").replace(".", "-")


def without_compilers(folder: Path) -> str:
    """Return a folder with links to the programs on the path, except compilers."""
    folder.mkdir()
    for program in (each for path in os.environ["PATH"].split(os.pathsep) for each in sorted(Path(path).glob("*"))):
        link = folder / program.name
        if not COMPILER.search(program.name) and not link.is_symlink():
            link.symlink_to(program)
    return str(folder)


def build(python: Path, tools: list[str], folder: Path) -> Path:
    """Build the source distribution, and from it a wheel without an index; return the wheel after checking both."""
    run(python, "-m", "pip", "install", "-q", "cmake", "ninja", *tools)
    hook = f"from scikit_build_core.build import build_sdist; build_sdist({str(folder)!r})"
    run(python, "-c", hook, cwd=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    check_sdist(sdist)
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir")
    run(python, "-m", "pip", "wheel", *offline, "-w", folder, sdist, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def run(python: Path, *arguments: object, cwd: Path = ROOT, path: str = PATH) -> None:
    """Run the interpreter of the environment, with its programs first on the path and no other package in sight."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = f"{python.parent}{os.pathsep}{path}"
    environment.setdefault("MPLBACKEND", "Agg")
    command = [str(python), *map(str, arguments)]
    print("+", *command[1:], flush=True)
    if status := subprocess.run(command, cwd=cwd, env=environment).returncode:
        raise SystemExit(status)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", choices=("lowest", "newest"))
    parser.add_argument("--all", action="store_true", help="run all tests, with PyTorch and the packages of the site")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environment")
    parser.add_argument("--wheel", type=Path, help="test this wheel, or one of this folder, instead of building one")
    parser.epilog = "Arguments after -- go to pytest, instead of the quick subset."
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, for_pytest = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    with open(ROOT / "pyproject.toml", "rb") as file:
        declared = tomllib.load(file)
    is_lowest = options.versions == "lowest"
    needed, tools = requirements(declared["project"], options.all), declared["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([options.python, "-m", "venv", f"{folder}/venv"], check=True)
        python = Path(folder, "venv", "bin", "python")
        if is_lowest:
            needed, tools = lowest_with_wheels(python, needed), [lowest(each) for each in tools]
        wheel = options.wheel.resolve() if options.wheel else build(python, tools, Path(folder))
        if wheel.is_dir():
            offline = ("--no-index", "--no-deps", "--find-links", wheel)
            run(python, "-m", "pip", "download", "-q", *offline, "-d", folder, "equipoise")
            (wheel,) = Path(folder).glob("*.whl")
        check_wheel(wheel)
        path = without_compilers(Path(folder, "programs"))
        run(python, "-m", "pip", "install", "-q", "--only-binary", ":all:", wheel, *needed, path=path)
        run(python, "-m", "pip", "freeze")
        run(python, "-c", f"import {', '.join(OPTIONAL)}")  # tests skip a package that cannot be imported
        run(python, python.parent / "equipoise", "embed", "digits", cwd=Path(folder), path=path)
        tests = for_pytest or ([] if options.all else QUICK)
        run(python, "-m", "pytest", "-p", "no:cacheprovider", *(OLD_PACKAGES if is_lowest else ()), *tests, path=path)


if __name__ == "__main__":
    main()

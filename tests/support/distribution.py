"""Checks of the source distribution and of the wheel."""

from __future__ import annotations

import re
import tarfile
import zipfile
from pathlib import Path

MAX_BYTES = 6_000_000
WHEEL_FILES = re.compile(
    r"equipoise/(\w+/)*\w+\.(pyi?|html|js|css)|equipoise/py\.typed|equipoise/_core[\w.-]*\.(so|pyd)"
    r"|equipoise-[\w.]+\.dist-info/(METADATA|WHEEL|RECORD|entry_points\.txt|licenses/LICENSE)"
)
SDIST_FOLDERS = {"docs", "examples", "src", "tests"}
SDIST_NEEDS = {
    *("CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md", "pyproject.toml"),
    *(
        "src/equipoise/__init__.py",
        "src/equipoise/__init__.pyi",
        "src/equipoise/py.typed",
        "src/_core/ops.cpp",
        "src/_core/bind/module.cpp",
    ),
    *("src/equipoise/studio/page/studio.html", "tests/conftest.py", "docs/conf.py"),
}
BUILT = re.compile(r"\.(so|pyd|o|a|pyc|whl|gz|zip)$|(^|/)(build|dist|shared|__pycache__|generated)/")


def check_wheel(path: Path) -> None:
    """Raise AssertionError if the wheel holds a file that it should not, or is too large."""
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
    unexpected = [name for name in names if not WHEEL_FILES.fullmatch(name)]
    assert not unexpected, f"{path.name} contains {unexpected}; exclude them in pyproject.toml"
    cores = [name for name in names if name.endswith((".so", ".pyd"))]
    assert len(cores) == 1, f"{path.name} contains {len(cores)} compiled modules instead of one: {cores}"
    check_size(path)


def check_sdist(path: Path) -> None:
    """Raise AssertionError if the source distribution lacks a file, holds a build product, or is too large."""
    with tarfile.open(path) as sdist:
        names = {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}
    assert names >= SDIST_NEEDS, f"{path.name} lacks {sorted(SDIST_NEEDS - names)}"
    folders = {name.partition("/")[0] for name in names if "/" in name}
    assert folders == SDIST_FOLDERS, f"{path.name} contains the folders {sorted(folders)}"
    built = sorted(name for name in names if BUILT.search(name))
    assert not built, f"{path.name} contains {built}; exclude them in pyproject.toml"
    check_size(path)


def check_size(path: Path) -> None:
    """Raise AssertionError above 6 MB."""
    size = path.stat().st_size
    assert size <= MAX_BYTES, f"{path.name} has {size:,} bytes; at most {MAX_BYTES:,} are allowed"

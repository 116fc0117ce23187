"""`equipoise info`: describe the installation."""

from __future__ import annotations

import argparse
import os
import platform
import re
import time
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

from .. import _core
from .._plural import plural
from .._version import __version__
from ..engines import ENGINES
from ..methods.estimator import threads
from .options import add_verb

DEVELOPER_EXTRAS = ("test", "docs")


def add(verbs: Any) -> None:
    """Add the verb `info` to the command line."""
    line = "print the version, cores, engines and extras of this installation"
    verb = add_verb(verbs, "info", line, "[--warm-up]", "  equipoise info\n  equipoise info --warm-up", run)
    verb.add_argument(
        "--warm-up",
        action="store_true",
        help="compile the GPU kernels of maps in 1, 2 and 3 dimensions instead, so that later programs start at once",
    )


def run(args: argparse.Namespace) -> int:
    """Print facts about the installation, one per line, or compile the GPU kernels."""
    if args.warm_up:
        return _warm_up()
    default = plural(threads(None), "thread")
    facts = {
        "equipoise": __version__,
        "Python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "packages": ", ".join(map(_installed, ("numpy", "scipy", "scikit-learn", "faiss-cpu"))),
        "cores": f"{os.cpu_count()}, {threads(-1)} available to this process; {default} by default",
        "instruction set": _core.instruction_set(),
        "engines": ", ".join(name for name in ENGINES if name != "auto" and (name != "torch" or find_spec("torch"))),
        "GPU": _gpu(),
    }
    for extra, packages in _extras().items():
        facts[f"extra {extra}"] = ", ".join(map(_installed, dict.fromkeys(packages)))  # once, whatever the markers
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
    """Return the packages of each extra of equipoise, such as `pages`, without the extras for developers."""
    extras: dict[str, list[str]] = {}
    for line in metadata.requires("equipoise") or ():
        found = re.match(r"([\w.-]+)[^;]*;.*extra == ['\"](\w+)['\"]", line)
        if found and found[2] not in DEVELOPER_EXTRAS:
            extras.setdefault(found[2], []).append(found[1])
    return extras


def _warm_up() -> int:
    """Compile the GPU kernels, which Triton keeps in its cache on disk, and print how long that took."""
    if not _has_gpu():
        print(f"no GPU, so there are no kernels to compile: {_gpu()}")
        return 0
    from ..methods.gpu_kernels import compile_all

    start = time.perf_counter()
    variants = [future.result() for future in compile_all()]
    took = time.perf_counter() - start
    for name in dict.fromkeys(variant.name for variant in variants):
        same = [variant for variant in variants if variant.name == name]
        seconds = ", ".join(f"{variant.seconds:.2f}" for variant in same)
        print(f"{name.strip('_'):18s} {plural(len(same), 'variant'):12s} {seconds} s")
    cached = sum(variant.cached for variant in variants)
    count = len(variants)
    print(f"{plural(count, 'variant')} in {took:.1f} s: {count - cached} compiled, {cached} read from disk")
    return 0


def _has_gpu() -> bool:
    """Return whether PyTorch finds a GPU. A CPU build of PyTorch is not imported, because that is slow."""
    if find_spec("torch") is None or metadata.version("torch").endswith("+cpu"):
        return False
    return bool(import_module("torch").cuda.is_available())


def _gpu() -> str:
    """Describe the GPUs that PyTorch finds, or say why there are none.

    A CPU build of PyTorch is not imported, because that is slow.
    """
    if find_spec("torch") is None:
        return 'needs PyTorch, which is not installed: pip install "equipoise[gpu]"'
    version = metadata.version("torch")
    if version.endswith("+cpu"):
        return f"none: PyTorch {version} is a CPU build"
    cuda: Any = import_module("torch").cuda
    if not cuda.is_available():
        return f"none found by PyTorch {version}"
    found = [cuda.get_device_properties(number) for number in range(cuda.device_count())]
    return ", ".join(f"{gpu.name}, {gpu.total_memory / 1e9:.0f} GB" for gpu in found) + f", with PyTorch {version}"

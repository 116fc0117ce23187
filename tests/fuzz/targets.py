"""Run a case: call what it names and return what must be finite."""

from __future__ import annotations

import ctypes
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq

from .commands import run_command
from .files import run_load, run_read
from .functions import run_function
from .inputs import make_input, make_labels, make_new
from .values import build, building

Results = list[tuple[str, Any, Any]]  # name, value, shape (None: any)


def run_case(case: dict[str, Any]) -> Results:
    """Run the case and return its results by name, with the shape that each must have."""
    return TARGETS[case["kind"]](case)


def run_fit(case: dict[str, Any]) -> Results:
    """Fit a method, then transform new rows and save and load it if the case says so."""
    with building():
        X, y = make_input(case["X"]), None
        new = make_new(case["new"], case["X"]) if "new" in case else None
    method = getattr(eq, case["method"])(**build(case["parameters"]))
    if "y" in case:
        y = make_labels(case["y"], case["X"]["table"]["rows"])
    method.fit(X, y) if y is not None else method.fit(X)
    mapped = getattr(method, "method", method) or eq.TSNE()  # Parametric(method=None) learns the map of t-SNE
    components = getattr(mapped, "n_components", None)
    n = len(_host(method.embedding_))
    results: Results = [("embedding_", method.embedding_, (n, components))]
    if len(getattr(method, "loss_curve_", ())):
        results.append(("loss_", method.loss_, None))
    if case.get("save"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "method.eqz")
            eq.save(method, path)
            method = eq.load(path)
        results.append(("embedding_ after load", method.embedding_, (n, components)))
    if new is not None:
        results.append(("transform", method.transform(new), None))
    return results


def _host(Y: Any) -> Any:
    return Y.get() if hasattr(Y, "get") else Y


# Faults on purpose: the tests of the fuzzer run them to see that each is caught.


def _crash(case: dict[str, Any]) -> Results:
    ctypes.string_at(0)
    return []


def _die(case: dict[str, Any]) -> Results:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def _hang(case: dict[str, Any]) -> Results:
    while True:
        time.sleep(0.1)


def _not_finite(case: dict[str, Any]) -> Results:
    return [("Y", np.array([[1.0, np.nan]]), (1, 2))]


def _wrong_shape(case: dict[str, Any]) -> Results:
    return [("Y", np.zeros((3, 2)), (3, 3))]


def _internal(case: dict[str, Any]) -> Results:
    np.linalg.inv(np.zeros((2, 2)))
    return []


def _large(case: dict[str, Any]) -> Results:
    np.ones(2**40, dtype=np.int8)
    return []


TARGETS: dict[str, Callable[[dict[str, Any]], Results]] = {
    "fit": run_fit,
    "function": run_function,
    "command": run_command,
    "read": run_read,
    "load": run_load,
    "crash": _crash,
    "die": _die,
    "hang": _hang,
    "not finite": _not_finite,
    "wrong shape": _wrong_shape,
    "internal": _internal,
    "large": _large,
}

"""Cases: what is called with what, a pure function of a seed and a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.methods import PUBLIC

from . import tables
from .commands import draw_command
from .containers import draw_container
from .files import draw_load, draw_read
from .functions import draw_function
from .parameters import NAMES, draw_parameters
from .values import choose

METHODS = [Method.__name__ for Method in PUBLIC]
KINDS = {"fit": 0.62, "function": 0.16, "command": 0.06, "read": 0.09, "load": 0.07}


def draw_case(seed: int, number: int) -> dict[str, Any]:
    """Return case `number` of a seed as a dictionary that JSON can hold."""
    rng = np.random.default_rng([seed, number])
    kind = list(KINDS)[int(rng.choice(len(KINDS), p=list(KINDS.values())))]
    draw = {
        "fit": draw_fit, "function": draw_function, "command": draw_command, "read": draw_read, "load": draw_load,
    }[kind]  # fmt: skip
    return {"kind": kind, **draw(rng)}


def draw_fit(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a method, its parameters, X, and what is done with the fitted method."""
    method = METHODS[number % len(METHODS)] if (number := int(rng.integers(10 * len(METHODS)))) else "TSNE"
    if method == "Parametric" and rng.random() < 0.7:  # the slowest
        method = "TSNE"
    case = {"method": method, "parameters": draw_parameters(rng, method), "X": draw_input(rng)}
    parameters = case["parameters"]
    if case["X"]["as"] != "table" and rng.random() < 0.85:  # most of them say what they are
        name = "metric" if case["X"]["as"] in ("distances", "neighbors") else "affinity"
        if name in NAMES[method]:
            parameters[name] = "precomputed"
    elif parameters.get("metric") == "precomputed" and rng.random() < 0.8:
        case["X"] |= {"as": "distances", "fault": choose(rng, tables.DISTANCE_FAULTS)}
    if (method == "UMAP" and rng.random() < 0.2) or rng.random() < 0.03:
        case["y"] = choose(rng, ["integers", "floats", "nan", "text", "short", "none", "unlabelled"])
    if rng.random() < 0.4:
        case["new"] = draw_new(rng)
    if rng.random() < 0.12:
        case["save"] = True
    return case


def draw_input(rng: np.random.Generator) -> dict[str, Any]:
    """Draw the description of X: a table, distances, affinities or neighbours in some container."""
    X = {"table": tables.draw_table(rng), "container": draw_container(rng), "as": "table"}
    r = rng.random()
    if r < 0.08:
        X |= {"as": "distances", "fault": choose(rng, tables.DISTANCE_FAULTS)}
    elif r < 0.16:
        X |= {"as": "affinities", "fault": choose(rng, tables.AFFINITY_FAULTS)}
    elif r < 0.19:
        X |= {"as": "neighbors", "fault": choose(rng, [None, None, *NEIGHBOR_FAULTS])}
    if X["as"] != "table":
        X["table"]["rows"] = min(X["table"]["rows"], 150)
        X["table"]["columns"] = min(X["table"]["columns"], 20)
    return X


NEIGHBOR_FAULTS = ("minus one", "out of range", "twice", "float indices", "nan", "negative", "shapes", "one column")


def draw_new(rng: np.random.Generator) -> dict[str, Any]:
    """Draw the description of the new rows of a transform, relative to the fitted ones."""
    new = {"rows": choose(rng, [0, 1, 1, 2, 3, 5, 20]), "seed": int(rng.integers(1000))}
    new["values"] = choose(rng, ["same", "near", "near", "far", "huge", "tiny", "nan", "zeros"])
    new["columns"] = choose(rng, [0, 0, 0, 0, 0, -1, 1])  # more or fewer than the fitted rows have
    new["container"] = {"kind": "array"} if rng.random() < 0.6 else draw_container(rng)
    return new

"""One valid call of each function of the compiled core, by argument, and values that may break any of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from equipoise import _core
from equipoise.engines.tables import tabulate
from equipoise.kernels import StudentT
from equipoise.spaces.surface import make_surface

N, K = 12, 3  # points, and neighbours of each
TETRAHEDRON = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)


def graph(n: int = N, k: int = K) -> _core.Csr:
    """Return the pattern of a graph from each of n points to the k after it."""
    indices = (np.arange(n)[:, None] + np.arange(1, k + 1)) % max(n, 1)
    return _core.Csr(k * np.arange(n + 1, dtype=np.int64), indices.ravel().astype(np.int32), n)


def table() -> dict[str, Any]:
    kernel = StudentT()
    segments, first, scale = tabulate(kernel.value, kernel.slope, 1e-3, 4.0, 0.0)
    return {"segments": segments, "first": first, "scale": scale}


def mesh(*size: int) -> _core.Mesh:
    return _core.Mesh(np.full(len(size), -4.0), 1.0, np.array(size))


def valid_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Generate names of functions and classes of the core with arguments of a valid call, in float32 and float64."""
    yield "instruction_set", {}
    yield "loop_seconds", {}
    yield "use_base_instruction_set", {"base": False}
    yield "Csr", {"indptr": np.array([0, 2, 3], np.int64), "indices": np.array([0, 1, 1], np.int32), "n_columns": 2}
    yield "Mesh", {"origin": np.zeros(2), "h": 1.0, "size": np.array([8, 8])}
    yield "Kernel.gaussian", {}
    yield "Kernel.clamped_power", {"b": 1.0, "c": 1.0}
    for name in ("shifted_power", "regularized_power", "log_complement"):
        yield f"Kernel.{name}", {"a": 1.0, "b": 2.0, "c": 0.5}
    yield "Kernel.tabulated", table()
    yield from geodesic_calls()
    yield from neighbor_calls()
    yield from cell_calls()
    yield from mixed_calls()
    for dtype in (np.float32, np.float64):
        for calls in (csr_calls, force_calls, curved_calls, mesh_calls, affinity_calls, stress_calls):
            yield from calls(np.random.RandomState(0), dtype)
    yield from float32_calls(np.random.RandomState(0))


def mixed_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Generate calls for rows of mixed columns: two numbers, a square and a category, one column with a gap."""
    rng = np.random.RandomState(0)
    rows = rng.standard_normal((N, 4))
    rows[:, 3] = np.arange(N) % 3
    rows[2, 1] = np.nan
    weights, kinds = np.array([0.5, 1.0, 2.0, 1.0]), np.array([0, 0, 1, 2], np.uint8)
    order = np.array([0, 2, 3, 1])
    base = np.zeros((1, 4, _core.MIXED_TILE), np.float32)
    base[0, :, :N] = rows[:, order].T
    yield (
        "mixed_nearest",
        {
            "base": base,
            "n": N,
            "queries": np.ascontiguousarray(rows[:5, order], np.float32),
            "weights": weights[order].astype(np.float32),
            "sizes": np.array([1, 1, 1, 1, 0, 0]),
            "none": 1.0,
            "self": 0,
            "out": np.empty((5, K), np.int32),
            "threads": 2,
        },
    )
    columns = {"queries": rows[:5].copy(), "base": rows, "weights": weights, "kinds": kinds, "none": 1.0}
    found = rng.randint(N, size=(5, K)).astype(np.int32)
    yield "mixed_distances", {**columns, "found": found, "out": np.empty((5, K)), "threads": 2}
    yield "mixed_block", {**columns, "out": np.empty((5, N)), "threads": 2}


def csr_calls(rng: Any, dtype: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    order = rng.permutation(N)
    position = np.argsort(order).astype(np.int32)
    for name, entries, more in (
        ("permute", N * K, {"order": order, "position": position}),
        ("symmetrize", 2 * N * K, {}),
    ):
        out = {"out_indptr": np.empty(N + 1, np.int64), "out_indices": np.empty(entries, np.int32)}
        call = {"A": graph(), "values": np.ones(N * K, dtype), **more, **out, "out_values": np.empty(entries, dtype)}
        yield name, call | {"threads": 2}
    x, out = np.ones(N, dtype), np.empty(N, dtype)
    yield "times", {"A": graph(), "values": np.ones(N * K, dtype), "x": x, "out": out, "threads": 2}


def force_calls(rng: Any, dtype: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for d, kernel in ((2, _core.Kernel.gaussian()), (3, _core.Kernel.tabulated(**table()))):
        Y = rng.standard_normal((N, d)).astype(dtype)
        sums = {"potential": np.empty(N), "force": np.empty((N, d)), "threads": 2}
        for weights in (np.float32, np.float64):
            yield "edges_dense", {"kernel": kernel, "b": -1.0, "A": np.ones((N, N), weights), "Y": Y, **sums}
            values = np.ones(N * K, weights)
            yield "edges_sparse", {"kernel": kernel, "b": -1.0, "A": graph(), "values": values, "Y": Y, **sums}
        field = {"potential": np.zeros((N, 2)), "half_gradient": np.zeros((N, 2, d)), "threads": 2}
        sources = {"kernel": kernel, "charges": np.ones((N, 2))}
        yield "field", {**sources, "Y": Y, **field}
        yield "field_at", {**sources, "targets": Y.copy(), "Y": Y, **field}
        offsets = {"offsets": np.array([1, 5]), "weights": np.ones(2), "graph": graph()}
        yield "field_offsets", {**sources, "Y": Y, **offsets, **field}
    gradient, gains = rng.standard_normal((N, 2)), {"velocity": np.ones((N, 2), dtype), "gain": np.ones((N, 2), dtype)}
    rates = dict.fromkeys(("rate", "momentum", "gain_up", "gain_down", "turned", "min_gain", "max_step"), 0.5)
    yield "momentum_step", {"gradient": gradient, **gains, **rates}


def curved_calls(rng: Any, dtype: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "Space.torus", {"period": np.array([2.0, 3.0])}
    yield "Space.hyperbolic_plane", {"radius": 2.0}
    kernels = _core.Kernel.gaussian(), _core.Kernel.tabulated(**table())
    for space, d in ((_core.Space.torus(np.full(5, 2.0)), 5), (_core.Space.hyperbolic_plane(2.0), 2)):
        Y = rng.standard_normal((N, d)).astype(dtype)
        sums = {"potential": np.empty(N), "force": np.empty((N, d)), "threads": 2}
        field = {"potential": np.zeros((N, 2)), "half_gradient": np.zeros((N, 2, d)), "threads": 2}
        for kernel in kernels:
            of = {"space": space, "kernel": kernel}
            for weights in (np.float32, np.float64):
                yield "curved_edges_dense", {**of, "b": -1.0, "A": np.ones((N, N), weights), "Y": Y, **sums}
                stored = {"A": graph(), "values": np.ones(N * K, weights), "targets": Y.copy(), "Y": Y}
                yield "curved_edges_sparse", {**of, "b": -1.0, **stored, **sums}
            yield "curved_field", {**of, "charges": np.ones((N, 2)), "targets": Y.copy(), "Y": Y, **field}
    state = {"Y": rng.standard_normal((N, 2)).astype(dtype), "velocity": np.ones((N, 2), dtype), "threads": 2}
    yield "hyperbolic_move", {"radius": 2.0, "step": np.ones((N, 2), dtype), **state}
    yield "hyperbolic_translate", {"radius": 2.0, "c0": 0.5, "c1": -0.5, **state}
    yield "hyperbolic_tangent", {"radius": 2.0, "U": Y, "F": np.ones((N, 2)), "out": np.empty((N, 2)), "threads": 2}
    mesh_of = {"h": 0.5, "angles": 40.0, "Y": Y, "threads": 2}
    yield "polar_nodes", {**mesh_of, "out": np.empty_like(Y)}
    yield "polar_gradient", {**mesh_of, "centre": 0.01, "gradient": np.ones((N, 3, 2))}


def mesh_calls(rng: Any, dtype: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for size in ((8,), (8, 9), (8, 9, 10), (128, 144)):  # the last is spread in strips
        d, nodes = len(size), int(np.prod(size))
        Y, charges = rng.standard_normal((N, d)).astype(dtype), np.ones((N, 2))
        grid = np.zeros(2 * nodes + _core.MESH_PADDING, dtype)
        out = {"potential": np.zeros((N, 2)), "half_gradient": np.zeros((N, 2, d)), "threads": 2}
        yield "spread", {"mesh": mesh(*size), "Y": Y, "charges": charges, "grid": grid, "threads": 2}
        whole = {"unit": 2.0**20, "grid": np.zeros(grid.shape, np.int64)}
        yield "spread_integers", {"mesh": mesh(*size), "Y": Y, "charges": charges, **whole, "threads": 2}
        yield "gather", {"mesh": mesh(*size), "Y": Y, "grid": grid, **out}
        yield "near", {"cells": mesh(*size), **table(), "targets": Y.copy(), "Y": Y, "charges": charges, **out}
        name = "NearField32" if dtype == np.float32 else "NearField64"
        sources = {"cells": mesh(*size), **table(), "Y": Y, "charges": charges, "threads": 2}
        yield name, sources
        yield "near_at", {"field": getattr(_core, name)(**sources), "targets": Y[:5].copy(), **few(out, 5)}
        lines = _core.VECTOR_BYTES // np.dtype(dtype).itemsize
        shape = (size[-1] + lines) // lines, int(np.prod([2 * s for s in size[:-1]])), lines
        frequencies, grids = np.ones(shape, dtype), np.ones((2, nodes), dtype)
        yield "convolve", {"mesh": mesh(*size), "frequencies": frequencies, "grid": grids, "threads": 2}
        if size != (8, 9, 10):  # steps in three dimensions differ from those in two only in the mesh
            yield from step_calls(rng, dtype, size, frequencies)


def few(out: dict[str, Any], m: int) -> dict[str, Any]:
    """Return the outputs of a field for its first m targets."""
    return {key: value[:m] if isinstance(value, np.ndarray) else value for key, value in out.items()}


def step_calls(rng: Any, dtype: Any, size: tuple[int, ...], frequencies: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    name, d = "MeshKernel32" if dtype == np.float32 else "MeshKernel64", len(size)
    on_mesh = {"h": 1.0, "size": np.array(size), "frequencies": frequencies, "shift": 0.5, "at_zero": -1.0}
    on_mesh |= {"radius": 2.0, **table()}
    yield name, on_mesh
    edges = {"edges": _core.Kernel.gaussian(), "A": graph(), "values": np.ones(N * K, np.float32)}
    rule = {"rate": 0.1, "gain_up": 0.2, "gain_down": 0.8, "turned": 0.5, "min_gain": 0.01, "max_step": 5.0}
    limits = {"lower": np.zeros(d), "upper": np.full(d, 100.0), "thin": 0.01, "tiny": 1e-9, "narrow": 0.0}
    moving = {"U": rng.standard_normal((N, d)).astype(np.float32)}
    moving |= {key: np.ones((N, d), np.float32) for key in ("velocity", "gain")}
    factors = {"pull": 1.0, "push": -1.0, "momentum": np.full(3, 0.5), "seconds": 1.0, "threads": 2}
    for charges in (np.ones((N, 2)), np.empty((0, 2))):
        on_points = {**edges, "charges": charges, **moving}
        yield "mesh_steps", {"kernel": getattr(_core, name)(**on_mesh), **on_points, **rule, **limits, **factors}


def affinity_calls(rng: Any, dtype: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    X = rng.standard_normal((N, 5))
    D2 = ((X[:, None] - X) ** 2).sum(axis=2)
    rows = {"perplexities": np.array([2.0, 3.0]), "P": np.empty((N, N), dtype), "saturated": np.empty(N, np.uint8)}
    yield "conditional_points", {"X": X, **rows, "threads": 2}
    yield "conditional_dense", {"D2": D2, **rows, "threads": 2}
    entries = rng.uniform(1, 2, N * K)
    yield "conditional_sparse", {"graph": graph(), "D2": entries, **rows, "P": np.empty(N * K, dtype), "threads": 2}
    weights = {"target": 1.5, "floor": 1e-3, "W": np.empty(N * K, dtype), "threads": 2}
    yield "memberships", {"graph": graph(), "D2": entries, **weights}


def stress_calls(rng: Any, dtype: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    pairs = N * (N - 1) // 2
    misfits = [_core.Misfit.relative(), _core.Misfit.logarithmic(10, 0.5, True), _core.Misfit.absolute(largest=True)]
    for name in ("absolute", "relative", "logarithmic"):
        yield f"Misfit.{name}", {"doublings": 3, "unit": 0.5, "stretched": True, "largest": False}
    for d, misfit in ((2, _core.Misfit.absolute()), (5, misfits[0]), (2, misfits[1]), (1, misfits[2])):
        Y, X = rng.standard_normal((N, d)).astype(dtype), rng.standard_normal((N, 7)).astype(np.float32)
        out = {"half_gradient": np.empty((N, d)), "threads": 2, "misfit": misfit}
        delta = np.ones(pairs, np.float32)
        yield "stress_stored", {"delta": delta, "weights": delta.copy(), "Y": Y, **out}
        yield "stress_points", {"X": X, "Y": Y, **out}
        between = {"delta": np.ones((N, 4), np.float32), "weights": np.ones(4, np.float32), "Y": Y, "T": Y[:4].copy()}
        yield "stress_between", {**between, **out, "half_gradient_T": np.empty((4, d))}
        listed = {"delta": np.ones(N * K, np.float32), "values": np.ones(N * K, np.float32), "Y": Y}
        yield "stress_listed", {"A": graph(), **listed, "stress": np.empty(N), **out}


def float32_calls(rng: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    Y = rng.standard_normal((N, 2)).astype(np.float32)
    out = {"potential": np.zeros((N, 2)), "half_gradient": np.zeros((N, 2, 2)), "threads": 2}
    near = {"space": _core.Space.hyperbolic_plane(2.0), **table(), "reach": 0.5, "targets": Y.copy(), "Y": Y}
    yield "polar_near", {**near, "charges": np.ones((N, 2)), **out}
    for d in (1, 2, 3, 9):
        Y = rng.standard_normal((N, d)).astype(np.float32)
        edges = {"kernel": _core.Kernel.gaussian(), "A": graph(), "values": np.ones(N * K, np.float32)}
        yield "edges_to", {**edges, "targets": Y.copy(), "Y": Y, "force": np.empty((N, d)), "threads": 2}
        arrays = {"period": np.ones(N * K, np.float32), "degrees": np.ones(N, np.float32)}
        due, out = np.zeros(N * K, np.float32), np.empty_like(Y)
        rates = dict.fromkeys(("a", "b", "epsilon", "clip", "rate", "exaggeration", "until"), 1.0)
        numbers = {"count": 5, "seed": 0, "step": 0, "threads": 2}
        step = {"graph": graph(), **arrays, "due": due, "Y": Y, "out": out}
        yield "negatives_step", {**step, **rates, **numbers}
        rates = dict.fromkeys(("clip", "rate", "exaggeration", "until"), 1.0)
        law, levels = table(), np.tile(np.arange(2, dtype=np.uint8), N * K // 2)
        push = law.pop("segments")
        tables = {"pull": np.concatenate([push, push]), "push": push, **law, "level": levels}
        yield "sampled_pairs_step", {**step, **tables, **rates, **numbers}
    yield from rank_calls(rng)
    yield "center", {"U": Y, "out": np.empty_like(Y), "threads": 2}
    yield "total", {"x": np.ones(9000), "threads": 2}
    yield "condensed_distances", {"X": Y, "out": np.empty(N * (N - 1) // 2, np.float32), "threads": 2}


def rank_calls(rng: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for n, d in ((N, 2), (_core.STEP_BLOCK + 3, 3)):
        blocks, U = -(-n // _core.STEP_BLOCK), rng.standard_normal((n, d)).astype(np.float32)
        force = {"edges": np.ones((n, d)), "half_gradient": np.ones((n, d)), "pull": 1.0, "push": -1.0}
        rates = dict.fromkeys(("rate", "momentum", "gain_up", "gain_down", "turned", "min_gain", "max_step"), 0.5)
        moving = {"U": U, "velocity": np.ones_like(U), "gain": np.ones_like(U), "sums": np.empty((blocks, d))}
        yield "move_rows", {**force, **rates, **moving, "threads": 2}
        boxes = np.empty((blocks, 2, d), np.float32)
        yield "shift_rows", {"row": np.ones(d, np.float32), "U": U, "boxes": boxes, "threads": 2}
        yield "block_sums", {"x": np.ones((n, d)), "sums": np.empty((blocks, d)), "threads": 2}


def neighbor_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    rng = np.random.RandomState(0)
    X, found = rng.standard_normal((N, 5)), np.zeros((N, K), np.int32)
    rows = np.arange(N, dtype=np.int32)
    yield "pair_distances", {"X": X, "neighbors": found, "rows": rows, "distances": np.empty((N, K)), "threads": 2}
    for n, k in ((N, K), (N, 11), (600, 5), (600, 30), (600, 300)):  # every way of bounding and of counting
        X = rng.standard_normal((n, 5))
        D = ((X[:2, None] - X) ** 2).sum(axis=2)
        values = np.zeros((2, -(-n // _core.RANK_TILE) * _core.RANK_TILE), np.float32)
        values[:, :n] = D
        rows = {"shift": np.zeros(2), "slack": np.full(2, 1e-3), "rows": np.arange(2)}
        others = np.tile(np.arange(2, k + 2, dtype=np.int32) % n, (2, 1))
        for source, exact in (("points", X), ("rows", D)):
            call = {"exact": exact, "n": n, "values": values, **rows}
            yield f"nearest_of_{source}", {**call, "out": np.empty((2, k), np.int32)}
            yield f"ranks_of_{source}", {**call, "others": others, "out": np.empty((2, k), np.int32)}


def cell_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Two cells of points, each of which sees both."""
    rng = np.random.RandomState(0)
    for n, k in ((N, K), (6000, 20)):  # 6,000 points are several chunks
        X, half = rng.standard_normal((n, 5)).astype(np.float32), n // 2
        ids = np.full((-(-n // _core.PANEL), _core.PANEL), -1, np.int32)
        ids.reshape(-1)[:n] = np.arange(n)
        data, norms = np.zeros((len(ids), 5, _core.PANEL), np.float32), np.zeros(ids.shape, np.float32)
        yield "pack_panels", {"X": X, "ids": ids, "data": data, "norms": norms, "threads": 2}
        _core.pack_panels(X, ids, data, norms, 1)
        ends = np.array([0, half, n])
        members = _core.Csr(ends, np.arange(n, dtype=np.int32), n)
        near = _core.Csr(np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), 2)
        panels = {"data": data, "norms": norms, "ids": ids, "ends": ends}
        for own, is_sorted in ((np.empty(0, np.int32), True), (np.arange(n, dtype=np.int32), False)):
            queries = {"queries": X.copy(), "self": own, "members": members, "near": near, "first": 1, "last": 9}
            rest = {"sorted": is_sorted, "out": np.empty((n, k), np.int32), "threads": 2}
            yield "nearest_in_groups", {**panels, **queries, **rest}
    listed = np.tile(np.arange(2, dtype=np.int32), (n, 1))
    cells = {"centres": X[:2].copy(), "listed": listed, "members": members, "ends": ends}
    yield "group_means", {"X": X, "members": members, "means": np.empty((2, 5), np.float32), "threads": 2}
    ranks = {"cells": np.arange(2, dtype=np.int32), "ranks": np.empty((2, 2), np.int32)}
    yield "cell_ranks", {**cells, **ranks, "threads": 2}
    for count, size in ((1, 0), (2, 4)):
        lists = {"indptr": np.array([0, 2, 4]), "indices": np.empty(size, np.int32)}
        yield "cells_in_reach", {**cells, "count": count, "least": n, **lists, "threads": 2}
    pairs = {"queries": X[:2].copy(), "listed": np.zeros((2, K), np.int32), "d2": np.empty((2, K), np.float32)}
    yield "listed_distances", {"X": X[:N].copy(), **pairs, "threads": 2}


def geodesic_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    rng = np.random.RandomState(0)
    surface = make_surface(rng.standard_normal((4, 3)), TETRAHEDRON)
    leaving = _core.Csr(surface.indptr, surface.leaving, surface.leaving.size)
    half_edges = {"faces": surface.faces, "lengths": surface.lengths, "twins": surface.twins, "bends": surface.bends}
    sources, out = np.array([0, 2], np.int32), {"distances": np.empty((2, 4)), "threads": 2}
    yield "surface_geodesics", {**half_edges, "leaving": leaving, "sources": sources, **out}
    lengths, out = np.ones(N * K), {"distances": np.empty((2, N)), "threads": 2}
    yield "shortest_paths", {"graph": graph(), "lengths": lengths, "sources": np.array([0, 5]), **out}
    excess = {"excess": np.empty(N), "argmax": np.empty(N, np.int64), "threads": 2}
    yield "longest_excess", {"D": np.ones((N, N)), **excess}

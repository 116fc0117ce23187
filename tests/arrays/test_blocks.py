"""Block sizes derived from the machine, and results that do not depend on them."""

import os

import numpy as np
import pyarrow
import pytest
from pyarrow import feather, parquet
from scipy import sparse

import equipoise as eq
from equipoise import data, kernels
from equipoise.affinities import locally_linear, perplexity
from equipoise.arrays import blocks
from equipoise.data import Dataset
from equipoise.data.checks.precomputed_input import check_neighbors
from equipoise.engines.reference import Reference
from equipoise.evaluate import Neighborhoods, ranks, silhouette
from equipoise.inputs import make_input
from equipoise.neighbors.search import Searcher, nearest_neighbors
from equipoise.neighbors.sparse import SparseSearcher

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(203, 12)), RNG.normal(size=(203, 3)).astype(np.float32)
NEAR = np.argsort(((X[:, None] - X) ** 2).sum(axis=2), axis=1)[:, 1:8]
SPARSE = sparse.random(203, 40, 0.2, "csr", random_state=0)
KERNEL = kernels.StudentT()


def field():
    found = Reference().field(Y, KERNEL, np.linspace(1, 2, len(Y)))
    return found.potential, found.gradient


def frozen_field():
    found = Reference().freeze(Y, KERNEL)(Y[:77] + 0.1)
    return found.potential, found.gradient


def joint_affinities():
    P = perplexity.conditional(((X[:, None] - X) ** 2).sum(axis=2), np.array([20.0]), np.float64, 1)
    return (perplexity.joint(P),)


def hoods(metric="euclidean"):
    found = Neighborhoods(X, Y, 30, metric=metric)
    return found.near_x, found.near_y, found.rank_x, found.rank_y


def graph(found):
    return found.indices, found.distances


def neighbor_lists():
    found = check_neighbors((NEAR, np.ones(NEAR.shape)))
    return found.indices, found.indptr, found.data


def lle():
    return (locally_linear.lle_weights(X, NEAR).data,)


CASES = {
    "field of the reference engine": field,
    "frozen field of the reference engine": frozen_field,
    "joint affinities": joint_affinities,
    "ranks": hoods,
    "ranks under a metric": lambda: hoods("canberra"),
    "silhouette": lambda: (silhouette(Y, np.arange(203) % 4).values,),
    "distances of pairs": lambda: (make_input(X, "euclidean").pairs(np.arange(203), np.arange(203)[::-1]),),
    "neighbours of new rows": lambda: graph(Searcher(X, "manhattan", 1).nearest(X[:50] + 0.1, 9)),
    "neighbours": lambda: graph(nearest_neighbors(X, 9)),
    "neighbours in a sparse table": lambda: graph(SparseSearcher(SPARSE, "cosine").within(9)),
    "precomputed neighbours": neighbor_lists,
    "locally linear weights": lle,
    "a fit by the reference engine": lambda: (eq.TSNE(engine="reference", n_iter=20, random_state=0).fit_transform(X),),
}


def with_blocks(monkeypatch, size, work):
    with monkeypatch.context() as patch:
        for module in (blocks, locally_linear):
            patch.setattr(module, "block_bytes", lambda: size)
        for module in (blocks, ranks, perplexity):
            patch.setattr(module, "cache_bytes", lambda: size)
        return [np.asarray(array).tobytes() for array in work()]


@pytest.mark.parametrize("work", CASES.values(), ids=CASES.keys())
def test_bytes_do_not_depend_on_the_machine(work, monkeypatch):
    """Blocks of one row, of a few rows, and of everything."""
    whole = with_blocks(monkeypatch, 2**30, work)
    for size in (64, 40_000):
        assert with_blocks(monkeypatch, size, work) == whole


def test_files_do_not_depend_on_the_machine(tmp_path, monkeypatch):
    names = [f"row {i}" for i in range(203)]
    table = pyarrow.table({"name": names, **{f"c{j}": X[:, j] for j in range(12)}})
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather", chunksize=90)
    np.save(tmp_path / "t.npy", X)

    def work():
        read = [data.read(tmp_path / f"t.{ending}") for ending in ("parquet", "feather", "npy")]
        data.write_map(tmp_path / "map.csv", Y, Dataset("map", X, None, ()))
        return [*(found.X for found in read), np.frombuffer((tmp_path / "map.csv").read_bytes(), np.uint8)]

    whole = with_blocks(monkeypatch, 2**30, work)
    assert whole[0] == X.tobytes()
    for size in (64, 5000):
        assert with_blocks(monkeypatch, size, work) == whole


def test_zarr_tables_do_not_depend_on_the_machine(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    zarr.save_array(str(tmp_path / "t.zarr"), X)

    def work():
        return [data.read(tmp_path / "t.zarr").X]

    assert with_blocks(monkeypatch, 64, work) == with_blocks(monkeypatch, 2**30, work) == [X.tobytes()]


@pytest.mark.parametrize(
    ("memory", "expected"), [(2**30, 2**23), (3 * 2**31, 3 * 2**22), (2**40, 2**24), (float("inf"), 2**24)]
)
def test_blocks_are_a_share_of_the_memory_within_bounds(memory, expected, monkeypatch):
    monkeypatch.setattr(blocks, "physical_memory", lambda: memory)
    assert blocks.block_bytes.__wrapped__() == expected


@pytest.mark.parametrize(("reported", "expected"), [(0, 2**20), (2**16, 2**18), (2**21, 2**21), (2**28, 2**22)])
def test_cache_blocks_have_the_size_of_the_cache_within_bounds(reported, expected, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: reported)
    assert blocks.cache_bytes.__wrapped__() == expected


def test_row_blocks_cover_all_rows(monkeypatch):
    monkeypatch.setattr(blocks, "block_bytes", lambda: 100)
    assert blocks.row_blocks(7, 30) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert blocks.row_blocks(2, 1000) == [slice(0, 1), slice(1, 2)]
    assert blocks.row_blocks(0, 8) == []

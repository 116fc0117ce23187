"""New rows in a map over ranks: the same bytes for any number of them, each row by itself."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.thread_ranks import run_ranks

import equipoise as eq
from equipoise.affinities.builders import Gaussian
from equipoise.distributed import fit
from equipoise.divergences import JensenShannon
from equipoise.engines import engine_state
from equipoise.inputs.table import Table
from equipoise.optimize.placement import FrozenMap

pytestmark = pytest.mark.ranks
RANKS = 1, 2, 3, 4
N, M = 2600, 1300  # three and two blocks of rows


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(8, 6))
    X, new = (centres[rng.integers(8, size=n)] + rng.normal(size=(n, 6)) for n in (N, M))
    new[[3, 1200]] = X[[77, 5]]
    return X, new


METHODS = {
    "t-SNE": eq.TSNE(n_iter=30, random_state=0, perplexity=10),
    "t-SNE on the sphere": eq.TSNE(geometry="sphere", n_iter=8, random_state=0, perplexity=10, tol=0.1),
    "SNE": eq.SNE(n_iter=8, random_state=0, perplexity=10),
    "Jensen-Shannon": eq.SymmetricSNE(divergence=JensenShannon(), n_iter=8, random_state=0, perplexity=10),
    "UMAP": eq.UMAP(n_iter=8, random_state=0, init="pca"),
    "DKLLE": eq.DKLLE(n_iter=8, random_state=0, n_neighbors=5, init="pca"),
}


@pytest.mark.parametrize("name", METHODS)
def test_positions_have_the_same_bytes_for_any_number_of_ranks(tables, name):
    X, new = tables

    def work(group):
        result = fit(METHODS[name], X, group=group)
        placed = result.transform(new)
        alone = [result.transform(new[i : i + 1]).gather() for i in (0, 3, 1299)]
        assert_array_equal(result.transform(new).rows, placed.rows)
        return result.gather(), placed.gather(), alone

    one = run_ranks(1, work)[0]
    for size in RANKS[1:]:
        assert_array_equal(run_ranks(size, work)[0][1], one[1])
    Y, placed, alone = one
    assert placed.shape == (M, Y.shape[1])
    assert placed.dtype == Y.dtype
    assert_array_equal(placed[[3, 1200]], Y[[77, 5]])  # rows equal to fitted ones
    assert_array_equal(np.concatenate(alone), placed[[0, 3, 1299]])


def test_positions_are_those_of_one_process(tables):
    X, new = tables
    method = METHODS["t-SNE"]

    def work(group):
        result = fit(method, X, group=group)
        return result.gather(), result.transform(new).gather()

    Y, placed = run_ranks(2, work)[0]
    problem = eq.TSNE(perplexity=10, engine="grid", random_state=0).problem(X)
    frozen = FrozenMap(problem.objective, problem.geometry, problem.engine, Y, 1.0, engine_state(problem.engine))
    P, _ = Gaussian(np.array([10.0]), 1).new_rows(Table(X, "euclidean"), new)
    apart = np.linalg.norm(frozen.place(P) - placed, axis=1)
    assert np.median(apart) < 1e-3 * Y.std()
    assert np.quantile(apart, 0.99) < 0.05 * Y.std()


@pytest.mark.parametrize("options", [{"n_columns": 3}, {"row_memory": 0}], ids=str)
def test_reduced_tables_files_and_other_metrics(tables, tmp_path, options):
    X, new = (table.astype(np.float32) for table in tables)
    np.save(tmp_path / "new.npy", new)
    method = eq.TSNE(n_iter=8, random_state=0, perplexity=10, metric="cosine")

    def work(group):
        result = fit(method, X, group=group, **options)
        placed = result.transform(tmp_path / "new.npy")
        placed.write(tmp_path / f"{group.size}.npy")
        start, stop = int(placed.ids[0]) if len(placed.ids) else 0, len(placed.ids)
        assert_array_equal(placed.ids, np.arange(start, start + stop))
        return result.gather(), placed.gather(), repr(placed)

    one, three = (run_ranks(size, work)[0] for size in (1, 3))
    assert_array_equal(one[1], three[1])
    assert_array_equal(np.load(tmp_path / "3.npy"), one[1])
    assert_array_equal(one[1][[3, 1200]], one[0][[77, 5]])
    assert one[2] == "<1,300 of 1,300 rows placed in a map>"


def test_tables_that_do_not_fit_are_refused(tables):
    X, new = tables
    method = eq.TSNE(n_iter=2, random_state=0, perplexity=10, metric="cosine")

    def transform(table):
        return run_ranks(2, lambda group: fit(method, X, group=group).transform(table))

    with pytest.raises(ValueError, match=r"X has 5 columns, but the fitted table has 6; pass the columns"):
        transform(new[:, :5])
    with pytest.raises(ValueError, match=r"row 2 is zero, so metric='cosine' is not defined for it"):
        transform(np.vstack([new[:2], np.zeros(6)]))
    with pytest.raises(ValueError, match=r"X has shape \(0, 6\); a table needs at least 1 row and 1 column"):
        transform(new[:0])

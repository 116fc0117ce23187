"""AnnData functions: which representation a map is computed from, what is written, and round trips through files."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

import equipoise as eq
from equipoise.anndata.stored import map_name
from equipoise.inputs import Distances, SparseTable
from equipoise.methods import ALL

ad = pytest.importorskip("anndata", reason="anndata is not installed")

POINTS, LABELS = make_blobs(80, 6, centers=3, cluster_std=4, random_state=1)
COUNTS = sparse.csr_matrix(np.random.RandomState(0).poisson(np.exp(POINTS / 8)).astype(np.float32))
FUNCTIONS = {
    name: function for name, function in vars(eq.anndata).items() if name in eq.anndata.__all__ and name != "evaluate"
}
BY_GRAPH = {
    *("sne", "symmetric_sne", "tsne", "power_sne", "gsne", "spherical_sne"),
    *("umap", "dkpca", "isomap", "laplacian_eigenmaps"),
}
QUICK = {"n_iter": 20, "random_state": 0}


def annotated(*, pca=True, neighbors=14):
    """Return counts with principal components and a graph, as scanpy.pp.pca and scanpy.pp.neighbors store them."""
    adata = ad.AnnData(COUNTS.copy())
    components = eq.PCA(5).fit_transform(COUNTS)
    if pca:
        adata.obsm["X_pca"] = components
    if neighbors:
        adata.obsp["distances"] = kneighbors_graph(components, neighbors, mode="distance")
        adata.uns["neighbors"] = {
            "connectivities_key": "connectivities",
            "distances_key": "distances",
            "params": {"n_neighbors": neighbors + 1, "method": "umap", "metric": "euclidean"},
        }
    return adata


def quick(name):
    accepted = inspect.signature(FUNCTIONS[name]).parameters
    return {key: value for key, value in QUICK.items() if key in accepted}


def test_every_method_has_an_anndata_function():
    documented = {function.__doc__.split("`")[1] for function in FUNCTIONS.values()}
    assert documented == {f"equipoise.{Method.__name__}" for Method in ALL}
    for name, function in FUNCTIONS.items():
        assert function.__name__ == name
        parameters = list(inspect.signature(function).parameters)
        assert parameters[:7] == ["adata", "use_rep", "layer", "n_pcs", "neighbors_key", "key_added", "copy"]
        assert "n_components" in parameters and inspect.signature(function).parameters["random_state"].default == 0


@pytest.mark.filterwarnings("ignore:the neighbour graph has", "ignore:obsm")
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_each_function_writes_the_map_and_its_parameters(name, capsys):
    adata = annotated()
    method = FUNCTIONS[name](adata, **quick(name))
    assert_array_equal(adata.obsm[f"X_{name}"], method.embedding_)
    written = adata.uns[name]
    assert written["params"]["n_components"] == method.n_components and written["loss"] == method.loss_
    source = "the 14 neighbours" if name in BY_GRAPH else "X" if name == "pca" else "obsm['X_pca']"
    assert written["source"].startswith(source)
    assert capsys.readouterr().out == f"{name}: using {written['source']}\n"
    assert isinstance(getattr(method, "_data", None), Distances) == (name in BY_GRAPH)


def test_precomputed_graph_gives_the_same_map_as_metric_precomputed():
    adata = annotated()
    D = adata.obsp["distances"]
    eq.anndata.umap(adata, **QUICK)
    assert_array_equal(adata.obsm["X_umap"], eq.UMAP(metric="precomputed", **QUICK).fit_transform(D))
    eq.anndata.tsne(adata, **QUICK)
    uniform = eq.TSNE(metric="precomputed", affinity="uniform", perplexity=14, **QUICK).fit(D)
    assert_array_equal(adata.obsm["X_tsne"], uniform.embedding_)
    eq.anndata.tsne(adata, perplexity=4, key_added="few", **QUICK)
    assert adata.uns["few"]["params"]["affinity"] == "gaussian"
    assert_array_equal(adata.obsm["few"], eq.TSNE(metric="precomputed", perplexity=4, **QUICK).fit(D).embedding_)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"perplexity": 20}, "row 0 of obsp['distances'] has 14 neighbours, but tsne with these parameters needs 60"),
        ({"perplexity": [4, 10]}, "has 14 neighbours, but tsne with these parameters needs 30"),
        ({"metric": "cosine"}, "metric applies to the columns of a table, not to the graph in obsp['distances']"),
    ],
)
def test_unsuitable_graph_is_ignored_and_reported(parameters, words, capsys):
    adata = annotated()
    method = eq.anndata.tsne(adata, **parameters, **QUICK)
    assert words in capsys.readouterr().out and adata.uns["tsne"]["source"].startswith("obsm['X_pca'] (")
    assert_array_equal(method.embedding_, eq.TSNE(**parameters, **QUICK).fit_transform(adata.obsm["X_pca"]))
    with pytest.raises(ValueError, match="omit neighbors_key='neighbors'"):
        eq.anndata.tsne(adata, neighbors_key="neighbors", **parameters)


def test_umap_ignores_graph_with_too_few_neighbors(capsys):
    eq.anndata.umap(annotated(), n_neighbors=20, **QUICK)
    assert "has 14 neighbours, but umap with these parameters needs 19" in capsys.readouterr().out
    method = eq.anndata.umap(annotated(neighbors=9), **QUICK)
    assert method.n_neighbors == 10 and isinstance(method._data, Distances)


def test_sparse_counts_stay_sparse():
    adata = annotated(pca=False, neighbors=0)
    method = eq.anndata.tsne(adata, **QUICK)
    assert adata.uns["tsne"]["source"] == "X" and isinstance(method._data, SparseTable)
    assert_array_equal(method.embedding_, eq.TSNE(**QUICK).fit_transform(COUNTS))
    chosen = eq.anndata.tsne(annotated(), use_rep="X", **QUICK)
    assert_array_equal(chosen.embedding_, method.embedding_)


def test_neighbors_key_selects_the_graph():
    adata = annotated(neighbors=0)
    adata.obsp["mine_distances"] = kneighbors_graph(adata.obsm["X_pca"], 6, mode="distance")
    adata.uns["mine"] = {"distances_key": "mine_distances"}
    assert eq.anndata.umap(adata, neighbors_key="mine", **QUICK).n_neighbors == 7


def test_graph_with_an_empty_row_is_ignored():
    adata = annotated()
    graph = adata.obsp["distances"].tolil()
    graph[7] = 0
    adata.obsp["distances"] = graph.tocsr()
    eq.anndata.umap(adata, **QUICK)
    assert adata.uns["umap"]["source"] == "obsm['X_pca'] (row 7 of obsp['distances'] has no neighbours)"


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_results_survive_h5ad_round_trip(tmp_path):
    adata = annotated()
    eq.anndata.tsne(adata, use_rep="X_pca", perplexity=[4, 10], optimizer=eq.Momentum(), **QUICK)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = ad.read_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(back.obsm["X_tsne"], adata.obsm["X_tsne"])
    params = back.uns["tsne"]["params"]
    assert params["perplexity"].tolist() == [4, 10] and params["optimizer"].startswith("Momentum(")
    assert back.uns["tsne"]["source"] == "obsm['X_pca']"
    backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    method = eq.anndata.tsne(backed, use_rep="X", key_added="counts", **QUICK)
    assert_array_equal(method.embedding_, eq.TSNE(**QUICK).fit_transform(COUNTS))
    backed.file.close()


@pytest.mark.parametrize(
    ("options", "table", "source"),
    [
        ({"n_pcs": 3}, lambda adata: adata.obsm["X_pca"][:, :3], "the first 3 columns of obsm['X_pca']"),
        ({"n_pcs": 0}, lambda adata: adata.X, "X"),
        ({"n_pcs": 2, "use_rep": "X_pca"}, lambda adata: adata.obsm["X_pca"][:, :2], "the first 2 columns of"),
        ({"layer": "dense"}, lambda adata: adata.layers["dense"], "layers['dense']"),
    ],
)
def test_n_pcs_and_layer_select_the_table(options, table, source, capsys):
    adata = annotated()
    adata.layers["dense"] = np.log1p(COUNTS.toarray())
    method = eq.anndata.tsne(adata, **options, **QUICK)
    assert capsys.readouterr().out.startswith(f"tsne: using {source}")
    assert_array_equal(method.embedding_, eq.TSNE(**QUICK).fit_transform(table(adata)))
    report = eq.anndata.evaluate(adata, "tsne")
    assert_array_equal(report.trust, eq.evaluate(table(adata), adata.obsm["X_tsne"]).trust)


def test_copy_returns_a_copy_with_the_map(tmp_path):
    adata = annotated()
    other = eq.anndata.tsne(adata, copy=True, **QUICK)
    assert "X_tsne" not in adata.obsm and "tsne" not in adata.uns
    eq.anndata.tsne(adata, **QUICK)
    assert_array_equal(other.obsm["X_tsne"], adata.obsm["X_tsne"])
    adata.X = adata.X.toarray()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    other = eq.anndata.tsne(backed, use_rep="X", copy=True, **QUICK)
    assert not other.isbacked and backed.isbacked
    assert_array_equal(other.obsm["X_tsne"], eq.TSNE(**QUICK).fit_transform(adata.X))
    backed.file.close()


def test_maps_of_a_view_and_default_seed():
    adata = annotated(neighbors=0)
    part = adata[:40]
    with pytest.warns(ad.ImplicitModificationWarning):
        eq.anndata.tsne(part, n_iter=20)
    assert "X_tsne" not in adata.obsm
    assert_array_equal(part.obsm["X_tsne"], eq.TSNE(**QUICK).fit_transform(adata.obsm["X_pca"][:40]))


def test_evaluate_writes_the_trust_of_each_cell(tmp_path):
    adata = annotated()
    adata.obs["kind"] = [f"kind {label}" for label in LABELS]
    eq.anndata.umap(adata, **QUICK)
    report = eq.anndata.evaluate(adata, "umap", labels="kind", k=10)
    expected = eq.evaluate(adata.obsm["X_pca"], adata.obsm["X_umap"], adata.obs["kind"].to_numpy(), k=10)
    assert_array_equal(adata.obs["umap_trust"], expected.trust)
    assert_array_equal(adata.obs["umap_continuity"], expected.continuity_of_points)
    assert_array_equal(adata.obs["umap_recall"], expected.kept)
    written = adata.uns["umap_trust"]
    assert written["trustworthiness"] == pytest.approx(adata.obs["umap_trust"].mean())
    assert (
        written["k"] == 10 and written["source"] == "obsm['X_pca']" and list(written["readings"]) == [*report.sentences]
    )
    assert float(report.class_errors[0]) == float(expected.class_errors[0])
    adata.write_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(ad.read_h5ad(tmp_path / "cells.h5ad").obs["umap_trust"], expected.trust)


def test_evaluate_uses_the_recorded_table_and_metric():
    adata = annotated()
    eq.anndata.tsne(adata, use_rep="X", metric="cosine", key_added="X_cosine", **QUICK)
    report = eq.anndata.evaluate(adata, "cosine", key_added="cosine map")
    assert_array_equal(report.trust, eq.evaluate(COUNTS, adata.obsm["X_cosine"], metric="cosine").trust)
    assert {"cosine map_trust", "cosine map_recall"} <= set(adata.obs) and "cosine map_trust" in adata.uns
    other = eq.anndata.evaluate(adata, "X_cosine", use_rep="X_pca", metric="euclidean")
    assert_array_equal(other.trust, eq.evaluate(adata.obsm["X_pca"], adata.obsm["X_cosine"]).trust)
    adata.uns["neighbors"]["params"] |= {"use_rep": "X_pca", "n_pcs": 3}  # as written by scanpy.pp.neighbors
    eq.anndata.umap(adata, **QUICK)
    by_graph = eq.anndata.evaluate(adata, "umap")
    assert_array_equal(by_graph.trust, eq.evaluate(adata.obsm["X_pca"][:, :3], adata.obsm["X_umap"]).trust)


@pytest.mark.parametrize(
    ("basis", "options", "words"),
    [
        ("tsen", {}, "basis='tsen' is not a key of adata.obsm; its keys are 'X_pca', 'X_torus'"),
        ("pca", {"labels": "kind"}, "labels='kind' is not a column of adata.obs; there are none to choose from"),
        ("torus", {}, r"obsm\['X_torus'\] is a map in the space torus; pass this space as geometry="),
    ],
)
def test_invalid_evaluation_raises(basis, options, words):
    adata = annotated()
    eq.anndata.tsne(adata, geometry="torus", key_added="X_torus", **QUICK)
    with pytest.raises(ValueError, match=words):
        eq.anndata.evaluate(adata, basis, **options)


def test_key_added_is_the_key_of_the_map_as_in_scanpy():
    adata = annotated()
    eq.anndata.tsne(adata, key_added="X_t50", **QUICK)
    assert "X_t50" in adata.obsm and "X_t50" in adata.uns and "X_X_t50" not in adata.obsm
    with pytest.raises(ValueError, match="key_added must be a string, got 3"):
        eq.anndata.tsne(adata, key_added=3, **QUICK)


def test_overwriting_a_map_of_another_width_warns():
    adata = annotated()
    with pytest.warns(UserWarning, match=r"obsm\['X_pca'\] had 5 columns and now has 2; set key_added") as caught:
        eq.anndata.pca(adata)
    assert caught[0].filename == __file__
    eq.anndata.pca(adata, n_components=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"use_rep": "X_scvi"}, r"use_rep='X_scvi' is not a key of adata.obsm; choose from 'X', 'X_pca'"),
        ({"use_rep": 3}, "use_rep must be 'X' or a key of adata.obsm, got int"),
        ({"neighbors_key": "mine"}, "neighbors_key='mine' is not a key of adata.uns; its keys are 'neighbors'"),
        ({"use_rep": "X", "neighbors_key": "neighbors"}, "exclude each other"),
        ({"layer": "counts", "use_rep": "X"}, "layer='counts' and use_rep='X' exclude each other; omit one"),
        ({"layer": "count"}, "layer='count' is not a key of adata.layers; choose from 'counts'"),
        ({"n_pcs": 6}, r"n_pcs=6 is out of range for obsm\['X_pca'\]; use an integer from 1 to 5"),
        ({"n_pcs": 2.5}, "n_pcs must be an integer, at least 0, got 2.5"),
        ({"n_pcs": 3, "use_rep": "X"}, "n_pcs=3 does not apply to use_rep='X'"),
        ({"n_pcs": 3, "neighbors_key": "neighbors"}, "n_pcs=3 and neighbors_key='neighbors' exclude each other"),
        ({"perplexities": 5}, r"TSNE has no parameter 'perplexities'; did you mean perplexity\?"),
    ],
)
def test_invalid_options_raise(options, words):
    adata = annotated()
    adata.layers["counts"] = adata.X
    with pytest.raises((TypeError, ValueError), match=words):
        eq.anndata.tsne(adata, **options)


def test_invalid_adata_raises():
    with pytest.raises(ValueError, match=r"adata must be an anndata.AnnData, got ndarray"):
        eq.anndata.tsne(POINTS)
    with pytest.raises(ValueError, match=r"layer='counts' is not a key of adata.layers; adata has no layers"):
        eq.anndata.tsne(annotated(), layer="counts")
    with pytest.raises(ValueError, match=r"n_pcs=5 needs obsm\['X_pca'\]; run scanpy.pp.pca first"):
        eq.anndata.tsne(annotated(pca=False), n_pcs=5)
    with pytest.raises(ValueError, match=r"adata.X is empty; choose a table"):
        eq.anndata.tsne(ad.AnnData(obs={"cell": range(5)}))
    adata = annotated()
    del adata.obsp["distances"]
    with pytest.raises(ValueError, match=r"refers to obsp\['distances'\], which does not exist"):
        eq.anndata.tsne(adata)


@pytest.mark.parametrize("name", [name for name in eq.anndata.__all__ if name != "evaluate"])
def test_functions_are_called_as_the_maps_of_their_methods(name):
    """The command line writes maps by the name of the method."""
    Method = getattr(eq, getattr(eq.anndata, name).__doc__.split("`equipoise.")[1].split("`")[0])
    assert map_name(Method) == getattr(eq.anndata, name).__name__ == name

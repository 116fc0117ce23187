"""The functions of other libraries that are answered, and where each answer is.

The modules of the answers import the methods, and are imported at the first call of each.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .answer import Answer
from .calls import ORIGINAL


def import_at_first_call(module: str, name: str) -> Callable[..., Any]:
    """Return a function that calls the function `name` of a module of this package, imported at the first call."""

    def call(*args: Any, **settings: Any) -> Any:
        return getattr(import_module(f"{__package__}.{module}"), name)(*args, **settings)

    return call


def _scikit_learn(module: str, path: str, method: str, answer: str) -> Answer:
    name = f"sklearn.manifold.{path.partition('.')[0]}"
    return Answer(
        f"sklearn.manifold.{module}", path, name, f"equipoise.{method}", import_at_first_call("scikit_learn", answer)
    )


def _umap(method: str, answer: str) -> Answer:
    name = "umap.UMAP" if method == "fit" else f"umap.UMAP.{method}"
    return Answer("umap.umap_", f"UMAP.{method}", name, "equipoise.UMAP", import_at_first_call("umap_learn", answer))


ORIGINAL_STATE = ("inverse_transform", "update", "__add__", "__sub__", "__mul__")  # need the state of umap-learn's fit

# Private methods are those that scikit-learn's public ones call after their checks, within set_output.
ANSWERS = (
    _scikit_learn("_t_sne", "TSNE._fit", "TSNE", "tsne"),
    _scikit_learn("_mds", "MDS.fit_transform", "MDS", "mds"),
    _scikit_learn("_isomap", "Isomap._fit_transform", "Isomap", "isomap"),
    _scikit_learn("_locally_linear", "LocallyLinearEmbedding._fit_transform", "LLE", "locally_linear_embedding"),
    _scikit_learn("_spectral_embedding", "SpectralEmbedding.fit", "LaplacianEigenmaps", "spectral_embedding"),
    _umap("fit", "fit"),
    *(_umap(name, "use_original_state") for name in ORIGINAL_STATE),
    Answer(
        "openTSNE.tsne",
        "TSNEEmbedding.optimize",
        "openTSNE.TSNEEmbedding.optimize",
        "equipoise.TSNE",
        import_at_first_call("opentsne", "optimize"),
    ),
    Answer("pacmap.pacmap", "PaCMAP.fit", "pacmap.PaCMAP", ORIGINAL, import_at_first_call("pacmap_library", "fit")),
)

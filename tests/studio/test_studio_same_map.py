"""The studio, the library and the command line give the same map for the same settings and seed."""

import numpy as np
import pytest

import equipoise as eq
from equipoise import data
from equipoise.cli import main
from equipoise.studio import Recipe, Run


@pytest.mark.parametrize(("method", "make"), [("tsne", eq.TSNE), ("umap", eq.UMAP), ("sne", eq.SNE)])
def test_studio_library_and_command_line_give_the_same_bytes(tmp_path, monkeypatch, method, make):
    monkeypatch.chdir(tmp_path)
    X = data.load("iris").X
    run = Run(X, Recipe(method, seed=3))
    run.step(200)
    fitted = make(n_iter=200, random_state=3).fit_transform(X)
    options = ["--method", method, "--n-iter", "200", "--seed", "3", "--out", "map.npy"]
    assert main(["embed", "iris", *options]) == 0
    embedded = np.load(tmp_path / "map.npy")
    assert run.frame.Y.tobytes() == fitted.tobytes() == embedded.tobytes()
    assert run.frame.Y.dtype == embedded.dtype == np.float32

"""Parametric maps in files: `eq.save` and `eq.load` without pickle, and ONNX graphs that give the same positions."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import equipoise as eq

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn
X, NEW = load_digits().data[:60], load_digits().data[60:90]


def fit(method=None, encoder=None, **settings):
    base = {"epochs": 1, "batch_size": 32, "random_state": 0, "device": "cpu", "n_jobs": 1}
    return eq.Parametric(method, encoder=encoder, **{**base, **settings}).fit(X)


def own_network(*activations):
    torch.manual_seed(0)
    layers = [nn.Linear(64, 16), *activations, nn.Dropout(0.5), nn.Identity(), nn.Linear(16, 2, bias=False)]
    return nn.Sequential(nn.Sequential(*layers[:2]), *layers[2:])


METHODS = {
    "default": None,
    "UMAP": eq.UMAP(n_neighbors=8),
    "sphere": eq.TSNE(perplexity=8, geometry="sphere"),
    "callbacks": eq.TSNE(perplexity=8, callbacks=[print]),
}
ACTIVATIONS = [
    nn.GELU(approximate="tanh"),
    nn.ReLU(),
    nn.LeakyReLU(0.1),
    nn.ELU(0.7),
    nn.SiLU(),
    nn.Tanh(),
    nn.Sigmoid(),
]


@pytest.mark.parametrize("name", METHODS)
def test_a_loaded_map_places_rows_exactly_as_the_saved_one(tmp_path, name):
    saved = fit(METHODS[name])
    eq.save(saved, tmp_path / "map.eq")
    loaded = eq.load(tmp_path / "map.eq")
    assert np.array_equal(loaded.transform(NEW), saved.transform(NEW))
    assert np.array_equal(loaded.embedding_, saved.embedding_)
    assert (loaded.loss_, loaded.n_epochs_, loaded.n_features_in_) == (saved.loss_, 1, 64)
    assert loaded.epochs == 1
    assert type(loaded.method) is type(saved.method)
    if loaded.method is not None:
        assert loaded.method.get_params() == {**saved.method.get_params(), "callbacks": ()}
    assert b"pickle" not in (tmp_path / "map.eq").read_bytes()


def test_an_own_network_of_known_layers_is_saved(tmp_path):
    saved = fit(encoder=own_network(*ACTIVATIONS))
    eq.save(saved, tmp_path / "map.eq")
    loaded = eq.load(tmp_path / "map.eq")
    assert np.array_equal(loaded.transform(NEW), saved.transform(NEW))
    assert isinstance(loaded.encoder, nn.Sequential)


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(64, 2)

    def forward(self, x):
        return self.last(x)


def test_an_own_module_is_refused_before_anything_is_written(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    fitted = fit(encoder=Own())
    for write in (lambda path: eq.save(fitted, path), fitted.to_onnx):
        with pytest.raises(ValueError, match=r"contains the module Own, .* or save encoder_.state_dict\(\)"):
            write(tmp_path / "map")
    assert not list(tmp_path.iterdir())


def test_a_method_that_is_code_is_refused(tmp_path):
    fitted = fit(eq.TSNE(perplexity=8, metric=lambda a, b: float(abs(a - b).sum())))
    with pytest.raises(ValueError, match="the parameter metric cannot be saved"):
        eq.save(fitted, tmp_path / "map.eq")


@pytest.mark.parametrize("name", METHODS)
def test_the_onnx_graph_gives_the_same_map(tmp_path, name):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    fitted = fit(METHODS[name])
    fitted.to_onnx(tmp_path / "map.onnx")
    session = runtime.InferenceSession(tmp_path / "map.onnx", providers=["CPUExecutionProvider"])
    for m in (1, 7, 30):  # rows: any number
        Y = session.run(["y"], {"x": NEW[:m].astype(np.float32)})[0]
        expected = fitted.transform(NEW[:m])
        assert Y.shape == expected.shape
        assert np.abs(Y - expected).max() < 1e-5 * max(1.0, np.abs(expected).max())


def test_the_onnx_graph_has_every_layer(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for k, activation in enumerate([*ACTIVATIONS, nn.Sequential(*ACTIVATIONS)]):
        fitted = fit(encoder=own_network(activation), epochs=0)
        fitted.to_onnx(tmp_path / f"{k}.onnx")
        session = runtime.InferenceSession(tmp_path / f"{k}.onnx", providers=["CPUExecutionProvider"])
        Y = session.run(None, {"x": NEW.astype(np.float32)})[0]
        assert np.allclose(Y, fitted.transform(NEW), atol=1e-5)


def test_onnx_is_named_if_it_is_missing(tmp_path, monkeypatch):
    import equipoise.methods.parametric.onnx_graph as module

    def missing(package, extra, purpose):
        raise ImportError(f'{purpose} needs {package}: pip install "equipoise[{extra}]"')

    monkeypatch.setattr(module, "import_optional", missing)
    with pytest.raises(ImportError, match=r'to_onnx needs onnx: pip install "equipoise\[onnx\]"'):
        fit().to_onnx(tmp_path / "map.onnx")

"""Parametric encoders: batch estimates of the loss, training, determinism and invalid input."""

from __future__ import annotations

import pickle
import re
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from support.parametric_cases import LABELS, METHODS, X, small
from support.source_tree import ROOT, needs

import equipoise as eq
from equipoise.kernels import Kernel

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.methods.parametric.batches import Edges, TrainingRows, as_csr  # noqa: E402
from equipoise.methods.parametric.encoder import Standardized, default_encoder, to_working  # noqa: E402
from equipoise.objectives.autograd.stochastic import Batch, squared, stochastic  # noqa: E402

CPU = torch.device("cpu")
every_method = pytest.mark.parametrize("name", METHODS)


def full_batch(problem, Y):
    """Return the loss, one batch of all points and edges, and the tensor of positions it depends on."""
    loss = stochastic(problem.objective, len(Y), CPU)
    A = as_csr(loss.A).tocoo()
    Y = torch.tensor(Y, requires_grad=True)
    U = to_working(Y, problem.geometry)
    d2 = squared(U[A.row] - U[A.col])
    return loss, Batch(len(Y), torch.arange(len(Y)), U, d2, torch.as_tensor(A.data.astype(np.float64))), Y


@every_method
def test_full_batch_gives_exact_loss_and_gradient(name, rng):
    method = clone(METHODS[name])
    if method.engine == "auto":
        method.set_params(engine="reference")
    problem = method.problem(X)
    Y = rng.standard_normal(problem.Y0.shape)
    loss, batch, at = full_batch(problem, Y)
    loss.linearized(batch).backward()
    truth = problem.gradient(Y)
    tol = 0.01 if method.engine == "grid" else 1e-5
    assert np.abs(at.grad.numpy() - truth).max() < tol * np.abs(truth).max()
    assert loss.loss_so_far() == pytest.approx(problem.loss(Y), rel=tol)


@every_method
def test_exaggeration_scales_only_the_attraction(name, rng):
    problem = clone(METHODS[name]).set_params(engine="reference").problem(X)
    Y = rng.standard_normal(problem.Y0.shape)
    loss, batch, at = full_batch(problem, Y)
    loss.linearized(batch, 3.0).backward()
    F = problem.objective.balance(problem.geometry.work(Y), problem.engine, loss=False, exaggeration=3.0)
    truth = -problem.geometry.pull_back(Y, F.attraction + F.repulsion)
    assert np.abs(at.grad.numpy() - truth).max() < 1e-5 * np.abs(truth).max()


@every_method
def test_batch_estimates_are_unbiased(name, rng):
    """The mean over many batches is within four standard errors of the truth, and these are small."""
    problem = clone(METHODS[name]).set_params(engine="reference").problem(X)
    Y = rng.standard_normal(problem.Y0.shape)
    loss, batch, _ = full_batch(problem, Y)
    truth = loss.estimate(batch).detach().numpy()
    if name == "SNE":  # the logarithm of an estimate is biased; its argument is not
        loss.estimate = lambda batch: torch.stack(
            [batch.over_edges(batch.d2), batch.over_points(batch.over_partners(loss.objective.kernel))]
        )
        truth = loss.estimate(batch).detach().numpy()
    edges, U = Edges(as_csr(loss.A), CPU), to_working(torch.as_tensor(Y), problem.geometry)
    generator, found = torch.Generator().manual_seed(0), []
    for _ in range(400):
        for heads, tails, weights in edges.batches(32, generator):
            d2 = squared(U[heads] - U[tails])
            found.append(loss.estimate(Batch(80, heads, U[heads], d2, weights * (80 / len(heads)))).numpy())
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - truth) < 4 * error).all()
    assert (error < 0.05 * np.abs(truth).max()).all()


def test_sne_row_normalisers_average_over_their_own_batches(rng):
    problem = eq.SNE(perplexity=8, engine="reference").problem(X)
    Y = rng.standard_normal(problem.Y0.shape)
    loss, edges, U = stochastic(problem.objective, 80, CPU), Edges(as_csr(problem.affinities), CPU), torch.as_tensor(Y)
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        for heads, tails, weights in edges.batches(32, generator):
            loss.estimate(Batch(80, heads, U[heads], squared(U[heads] - U[tails]), weights))
    K = np.exp(-cdist(Y, Y, "sqeuclidean"))
    Z = K.sum(axis=1) - 1
    found = (loss.Z.total / loss.Z.weight).numpy()
    assert abs(np.mean(found / Z) - 1) < 0.05 and np.corrcoef(found, Z)[0, 1] > 0.9


def test_edges_are_sampled_in_proportion_to_their_weights():
    A = sparse.csr_matrix(np.array([[0, 1, 3.0], [0, 0, 0], [2, 0, 0]]))
    edges, generator = Edges(A, CPU), torch.Generator().manual_seed(0)
    heads = torch.arange(3).repeat(4000)
    tails, weights = (t.reshape(4000, 3) for t in edges.sample(heads, generator))
    assert weights[0].tolist() == [4, 0, 2]
    assert (tails[:, 0] == 2).double().mean() == pytest.approx(0.75, abs=0.03) and not (tails[:, 0] == 0).any()
    assert (tails[:, 1] == 1).all() and (tails[:, 2] == 0).all()  # no edge: the point itself, with weight 0


@pytest.mark.parametrize(
    "n, size, lengths",
    [(90, 20, [18] * 5), (91, 20, [19] + [18] * 4), (80, 20, [20] * 4), (7, 2, [3, 2, 2]), (3, 2, [3]), (2, 2, [2])],
)
def test_epoch_contains_every_point_once(n, size, lengths):
    edges = Edges(as_csr(np.ones((n, n))), CPU)
    heads = [h for h, _, _ in edges.batches(size, torch.Generator().manual_seed(0))]
    assert [len(h) for h in heads] == lengths and sorted(torch.cat(heads).tolist()) == list(range(n))


@every_method
def test_training_lowers_the_loss(name):
    encoder = small(METHODS[name], epochs=30).fit(X)
    start = small(METHODS[name], epochs=0).fit(X)
    assert encoder.loss_ < start.loss_ and start.loss_curve_.shape == (0, 2)
    assert encoder.embedding_.shape == (80, METHODS[name].n_components) and encoder.embedding_.dtype == np.float32
    assert encoder.loss_ == METHODS[name].problem(X).loss(encoder.embedding_)
    assert encoder.loss_curve_[:, 0].tolist() == list(range(1, 31)) and encoder.n_epochs_ == 30
    if name == "SphericalSNE":
        assert np.abs(np.linalg.norm(encoder.transform(X + 1), axis=1) - 1).max() < 1e-6


@every_method
def test_duplicate_rows_get_equal_positions(name):
    twice = np.repeat(X[:40], 2, axis=0)
    encoder = small(METHODS[name]).fit(twice)
    assert np.isfinite(encoder.loss_) and np.array_equal(encoder.embedding_[::2], encoder.embedding_[1::2])


@pytest.mark.slow
def test_encoder_classifies_fitted_and_unseen_digits():
    data, digit = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(data))
    old, new = order[:1400], order[1400:]
    encoder = eq.Parametric(epochs=100, batch_size=256, random_state=0, n_jobs=1, device="cpu").fit(data[old])
    vote = KNeighborsClassifier(10).fit(encoder.embedding_, digit[old])
    assert vote.score(encoder.embedding_, digit[old]) > 0.95
    assert vote.score(encoder.transform(data[new]), digit[new]) > 0.9
    assert encoder.loss_ < 1.0 and np.mean(encoder.loss_curve_[-10:, 1]) == pytest.approx(encoder.loss_, abs=0.05)


def test_fit_is_deterministic_and_keeps_global_random_state():
    torch.manual_seed(3)
    expected, threads = torch.rand(3), torch.get_num_threads()
    torch.manual_seed(3)
    dropping = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 2)
    )
    torch.manual_seed(3)
    for encoder in (None, dropping):
        one, two, other = (small(encoder=encoder, random_state=seed).fit(X) for seed in (0, 0, 1))
        assert one.embedding_.tobytes() == two.embedding_.tobytes() != other.embedding_.tobytes()
        assert one.loss_curve_.tobytes() == two.loss_curve_.tobytes()
    assert torch.equal(torch.rand(3), expected) and torch.get_num_threads() == threads


def test_parametric_follows_the_scikit_learn_interface():
    encoder = small(eq.TSNE(3, perplexity=8))
    assert clone(encoder).set_params(method__perplexity=9).method.perplexity == 9
    assert "epochs=6" in repr(encoder)
    fitted = clone(encoder).fit(X)
    assert fitted.n_features_in_ == 6 and fitted.get_feature_names_out().tolist() == [
        f"parametric{i}" for i in range(3)
    ]
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.transform(X), fitted.embedding_) and fitted.knn_recall_ == 1.0
    assert not hasattr(encoder, "embedding_") and fitted.affinities_.shape == (80, 80)
    assert np.array_equal(clone(encoder).fit_transform(X), fitted.embedding_)


@needs("docs")
def test_code_of_the_parametric_guide_runs():
    page = ROOT / "docs" / "parametric.md"
    namespace = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)[:3]:
        exec(code.replace("random_state=0", "random_state=0, epochs=1"), namespace)
    assert namespace["Y"].shape == (1400, 2) and namespace["Y_new"].shape == (397, 2)


def test_feature_names_are_checked():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    encoder = small().fit(frame)
    assert encoder.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        encoder.transform(frame[list("fedcba")])
    with pytest.raises(ValueError, match="6 features"):
        small().fit(X).transform(X[:, :4])


def test_tensor_input_gives_tensor_output():
    table = torch.as_tensor(X)
    encoder = small().fit(table)
    assert isinstance(encoder.embedding_, torch.Tensor) and encoder.embedding_.device == table.device
    assert encoder.embedding_.numpy().tobytes() == small().fit(X).embedding_.tobytes()
    assert isinstance(pickle.loads(pickle.dumps(encoder)).embedding_, torch.Tensor)
    Y = encoder.transform(table[:7])
    assert isinstance(Y, torch.Tensor) and Y.dtype == torch.float32 and Y.device == table.device and not Y.requires_grad
    assert np.abs(Y.numpy() - encoder.transform(X[:7])).max() < 1e-5
    Z = small().fit_transform(table)
    assert isinstance(Z, torch.Tensor) and torch.equal(Z, encoder.embedding_)


def test_labels_are_passed_to_the_method():
    def between(encoder):
        mu = encoder.affinities_.tocoo()
        return mu.data[LABELS[mu.row] != LABELS[mu.col]].sum() / mu.data.sum()

    umap = eq.UMAP(n_neighbors=8)
    assert between(small(umap).fit(X, LABELS)) < 0.3 * between(small(umap).fit(X))


class ImageEncoder(torch.nn.Module):
    """Convolutional encoder of rows of 64 pixels, reshaped to 8 × 8 images."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2)
        )

    def forward(self, x):
        return self.layers(x.reshape(-1, 1, 8, 8) / 16)


def test_custom_encoder_is_copied_and_trained():
    data = load_digits().data[:200]
    given = ImageEncoder()
    before = pickle.dumps(given.state_dict())
    encoder = eq.Parametric(encoder=given, epochs=20, batch_size=64, random_state=0, n_jobs=1, device="cpu").fit(data)
    assert pickle.dumps(given.state_dict()) == before and isinstance(encoder.encoder_, ImageEncoder)
    assert encoder.loss_ < eq.Parametric(encoder=given, epochs=0, random_state=0, device="cpu").fit(data).loss_
    assert np.array_equal(clone(encoder).fit(data).embedding_, encoder.embedding_)


def test_default_encoder_output_has_the_requested_spread(rng):
    table = torch.as_tensor(1000 + 5 * rng.standard_normal((300, 7)), dtype=torch.float32)
    encoder = default_encoder(TrainingRows(table, CPU), 2, 3.0)
    assert float(encoder(table).detach().std(dim=0).mean()) == pytest.approx(3.0, rel=0.01)
    standardized = encoder[0](table)
    assert isinstance(encoder[0], Standardized) and float(standardized.std()) == pytest.approx(1, rel=0.01)
    assert TrainingRows(torch.ones(4, 2), CPU).mean_and_scale()[1] == 1.0


@pytest.mark.parametrize(("n", "rows"), [(7, [0, 1, 3, 5]), (4, [0, 1, 2, 3]), (3, [0, 1, 2])])
def test_sample_of_training_rows_is_spread_over_the_table(n, rows):
    assert TrainingRows(torch.arange(n), CPU).sample(4).tolist() == rows


class NumPyKernel(Kernel):
    def value(self, d2):
        return np.exp(-d2)

    def slope(self, d2):
        return -np.exp(-d2)


class CustomKernel(Kernel):
    def value(self, d2):
        return (1 + d2) ** -1.5

    def slope(self, d2):
        return -1.5 * (1 + d2) ** -2.5


def test_custom_kernel_must_support_tensors():
    assert np.isfinite(small(eq.SymmetricSNE(kernel=CustomKernel(), perplexity=8)).fit(X).loss_)
    with pytest.raises(ValueError, match="array_namespace"):
        small(eq.SymmetricSNE(kernel=NumPyKernel(), perplexity=8)).fit(X)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"method": eq.DKLLE()}, "cannot be estimated from batches"),
        ({"method": eq.DKPCA()}, "cannot be estimated from batches"),
        ({"method": eq.GSNE(alpha=1.0)}, "cannot be estimated from batches"),
        ({"method": eq.SymmetricSNE(divergence=eq.divergences.ChiSquare())}, "cannot be estimated from batches"),
        ({"method": eq.TSNE(g=lambda Y: Y[:, None] * Y[..., None])}, "cannot be estimated from batches"),
        ({"method": eq.PCA()}, "must be an Embedding such as TSNE"),
        ({"method": eq.TSNE(metric="precomputed")}, 'but its method has metric="precomputed"; use another metric'),
        (
            {"method": eq.TSNE(affinity="precomputed")},
            'but its method has affinity="precomputed"; use another affinity',
        ),
        ({"method": eq.TSNE(n_components=0)}, "n_components must be"),
        ({"epochs": -1}, "epochs must be an integer >= 0"),
        ({"epochs": 1.5}, "epochs must be an integer >= 0"),
        ({"batch_size": 1}, "batch_size must be an integer >= 2"),
        ({"learning_rate": 0}, "learning_rate must be a positive number"),
        ({"device": "tpu"}, "device must be one of"),
        ({"callbacks": [3]}, "callbacks must be"),
        ({"encoder": "mlp"}, r"torch\.nn\.Module or None"),
        ({"encoder": torch.nn.ReLU()}, "no trainable parameters"),
        ({"encoder": torch.nn.Linear(5, 2)}, r"must accept float32 rows of shape \(2, 6\)"),
        ({"encoder": torch.nn.Linear(6, 3)}, r"\(2, 2\), because n_components=2; it returned shape \(2, 3\)"),
    ],
)
def test_invalid_parameters_raise_before_neighbour_search(parameters, message, monkeypatch):
    monkeypatch.setattr(eq.Embedding, "problem", lambda *_: pytest.fail("neighbours were searched"))
    with pytest.raises(ValueError, match=message):
        small(**parameters).fit(X)


def test_invalid_tables_raise():
    hole = X.copy()
    hole[3, 2] = np.nan
    for rows in (hole, torch.as_tensor(hole)):
        with pytest.raises(ValueError, match=r"(?i)nan at row 3, column 2"):
            small().fit(rows)
    with pytest.raises(ValueError, match="X in float32 contains inf at row 0, column 0"):
        small().fit(np.where(np.arange(6) == 0, 1e39, X))
    with pytest.raises(TypeError, match="dense data is required"):
        small().fit(sparse.csr_matrix(X))
    with pytest.raises(ValueError, match=r"got a tensor of shape \(6,\)"):
        small().fit(X).transform(torch.zeros(6))


def test_too_large_learning_rate_raises():
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        small(learning_rate=1e30).fit(X)


def test_missing_torch_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'Parametric needs torch: pip install "equipoise\[gpu\]"'):
        eq.Parametric().fit(X)

"""The estimator `Parametric`, which trains an encoder network on the loss of a method."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ... import progress
from ..._optional import import_optional
from ..._plural import plural
from ..._types import Callback
from ...arrays.namespace import check_random_state, is_integer, is_positive, is_tensor, to_numpy
from ...data import check_finite, check_table
from ...engines import choose_device
from ...geometry import Geometry
from ...inputs import is_space
from ...memory import gpu_memory
from ...neighbors.vectors import is_mixed
from ...optimize.descent import Descent, split_callbacks
from ...problems.forces import ForceProblem
from ...saving.checkpoint import Checkpoint, RunCheckpoints, fingerprint
from ..embedding import Embedding
from ..estimator import Estimator, accepts_cupy, check_callbacks, check_verbose, lock_checkpoints
from ..sne import TSNE
from .layers import DEPTH, WIDTH

if TYPE_CHECKING:
    from torch import Tensor

    from .training import Settings, Training

LARGEST_RATE = 1e37  # Adam's first steps are ten times the rate, in float32
PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])  # affinities of two points, to construct the loss of a method


@dataclass(eq=False, repr=False)
class Parametric(Estimator):
    """Train an encoder network on the loss of a method, so that the map is a function of the data: y = f(x).

    Neighbours, affinities and loss are those of the method. A batch consists of random points, each with one edge to a
    neighbour, drawn with a probability proportional to its affinity. Points attract along these edges, and all pairs
    of the batch repel. On average the steps follow the gradient of the loss over all points (docs/parametric.md).
    Requires PyTorch.

    Parameters
    ----------
    method : Embedding, optional
        The method whose loss is used; `TSNE()` by default. It must be `UMAP()`, or a method of the SNE family with an
        `Alpha` divergence of order α < 1, such as KL (α = −1). Its metric tensor `g` must not be a function. Its
        neighbours, affinities, kernel, dimension and `exaggeration` apply; its initial map, iterations, learning rate,
        early exaggeration and callbacks are ignored.
    encoder : torch.nn.Module, optional
        Network that maps float32 rows (m, D) to positions (m, n_components); a copy of it is trained. The default
        network subtracts the mean row, divides by one number for all columns, and has three hidden layers of 256 units.
    epochs : int, default=200
        Number of epochs; in each, one random edge of every point is used.
    batch_size : int, default=512
        Maximum number of edges in a batch; the batches of an epoch are of nearly equal size. Every batch has at least
        two edges, so with batch_size=2 and an odd number of rows one batch has three.
    learning_rate : float, default=3e-3
        Initial learning rate of the optimiser, Adam; it decreases to 0 along half a cosine.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device for training; "auto" is a GPU if one is available.
    random_state : int, RandomState or None, default=None
        The same seed gives byte-identical results on the same device with the same number of threads.
    callbacks : sequence of callable or Checkpoint, default=()
        Functions are called with (epoch, loss, Y) after every epoch and stop the training by returning True. A
        `Checkpoint` saves the run to a file every `Checkpoint.every` epochs, to resume it after an interruption.
    verbose : int, default=0
        1 shows progress: a bar in a terminal or notebook, otherwise lines with the loss.
    n_jobs : int, optional
        Number of threads. By default the affinities are computed with `method.n_jobs`; the training uses all cores, or
        OMP_NUM_THREADS if that is fewer.

    Attributes
    ----------
    embedding_ : ndarray or Tensor of shape (n, d)
        The positions of X in float32. If X is a tensor, they are a tensor on the same device.
    encoder_ : torch.nn.Module
        The trained encoder.
    loss_ : float
        The loss of the method at `embedding_`, computed by the engine of the method.
    loss_curve_ : ndarray of shape (n_epochs_, 2)
        Epoch and loss, estimated from the batches of the epoch.
    affinities_ : ndarray or csr_matrix of shape (n, n)
        The affinities P.
    knn_recall_ : float
        Fraction of the true neighbours that the search found.
    n_epochs_ : int
        Number of epochs that were completed.

    Examples
    --------
    >>> encoder = eq.Parametric(eq.TSNE(perplexity=50), random_state=0).fit(X)
    >>> Y_new = encoder.transform(X_new)
    """

    method: Embedding | None = None
    _: KW_ONLY
    _GPU_PARAMETERS = "batch_size or encoder"
    encoder: Any = None
    epochs: int = 200
    batch_size: int = 512
    learning_rate: float = 3e-3
    device: str = "auto"
    random_state: Any = None
    callbacks: Sequence[Callback | Checkpoint] = ()
    verbose: int = 0
    n_jobs: int | None = None

    @property
    def n_columns(self) -> int:
        """The number of columns of the map."""
        return self._method().n_columns

    @property
    def _n_features_out(self) -> int:
        return self.n_columns

    def _gpu_bytes(self, n: int, D: int) -> float:
        # The table; for a batch, the values in the layers of the default encoder at both ends of every edge and the
        # distances of all pairs, three arrays of each: values, their functions, and gradients.
        batch = min(int(self.batch_size), n)
        return gpu_memory(n, D, 0) + 24.0 * batch * (D + DEPTH * WIDTH) + 12.0 * batch**2

    def _method(self) -> Embedding:
        return TSNE() if self.method is None else self.method

    @accepts_cupy
    def fit(self, X: Any, y: Any = None) -> Parametric:
        """Train the encoder.

        Ctrl-C raises KeyboardInterrupt; `encoder_` is then the encoder as trained so far, and `embedding_` its map.

        Parameters
        ----------
        X : array-like or Tensor of shape (n, D)
        y : array-like of shape (n,), optional
            Labels, for the methods that use them.

        Returns
        -------
        self : Parametric
        """
        device, verbose = self.check_parameters(), check_verbose(self.verbose)
        rows = _as_rows(X, 2)
        validate_data(self, X, skip_check_array=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with lock_checkpoints(self.callbacks), progress.shown(verbose) as displayed, self._explain_out_of_memory(X):
            print_losses = verbose and not displayed
            settings = self._settings(seed, print_losses)
            training, problem = self._prepare(X, y, rows, device, settings)
            self.affinities_, self.knn_recall_ = problem.affinities, problem.knn_recall
            self._geometry: Geometry = problem.geometry
            try:
                self._train(training)
            except KeyboardInterrupt:
                self._set_fitted(training, problem, X)
                raise
            self._set_fitted(training, problem, X)
        return self

    def _settings(self, seed: int, print_losses: bool) -> Settings:
        from .training import Settings

        return Settings(
            epochs=int(self.epochs),
            batch_size=int(self.batch_size),
            learning_rate=float(self.learning_rate),
            exaggeration=float(self._method().exaggeration),
            seed=seed,
            threads=self._n_threads(),
            print_losses=print_losses,
        )

    def _prepare(self, X: Any, y: Any, rows: Tensor, device: str, settings: Settings) -> tuple[Training, ForceProblem]:
        """Return the training, and the problem whose loss it minimises."""
        import torch

        from ...geometry import resolve
        from ...objectives.autograd.stochastic import stochastic
        from .batches import TrainingRows
        from .encoder import copy_encoder, default_encoder
        from .training import Training, seeded

        method, seed = self._method(), settings.seed
        if resolve(method.geometry).pairs is not None:
            raise ValueError(
                f"Parametric trains in flat space and on the sphere, not with geometry={method.geometry!r}; use"
                ' geometry="plane" or "sphere"'
            )
        table = TrainingRows(rows, torch.device(device))
        with seeded(settings.threads, seed, torch.device("cpu")):
            if self.encoder is not None:
                encoder = copy_encoder(self.encoder, table, method.n_columns)
            else:
                # A wider initial map does not converge: at large distances kernels are power laws, forces do not
                # depend on the scale, and noise widens the map. Measured for p-SNE on 1,400 digits: final loss 3.50
                # from 10 kernel lengths, 0.87 from one.
                encoder = default_encoder(table, method.n_columns, method.output_kernel().length)
        _, checkpoints = split_callbacks(self.callbacks)
        method = clone(method).set_params(init="random", random_state=seed, callbacks=checkpoints, verbose=0)
        if self.n_jobs is not None:
            method.set_params(n_jobs=self.n_jobs)
        problem = method.problem(X, y)
        loss = stochastic(problem.objective, len(table), table.device)
        return Training(encoder, table, loss, problem.geometry, settings), problem

    def _train(self, training: Training) -> None:
        functions, checkpoints = split_callbacks(self.callbacks)
        saver = None
        if checkpoints:
            saver = RunCheckpoints(checkpoints, self._describe_run(training), training.plain)
            saver.resume(training.restore)
        Descent(training, training.state, training.settings.epochs, functions, saver).run()

    def _describe_run(self, training: Training) -> dict[str, Any]:
        """Return the values that determine the run, for checkpoints.

        The initial weights of a user-supplied encoder are included; those of the default encoder
        follow from the other values.
        """
        from .training import to_arrays

        about = training.describe()
        if self.encoder is not None:
            about["encoder"] = fingerprint(about["encoder"], to_arrays(training.encoder.state_dict()))
        return about

    def _set_fitted(self, training: Training, problem: ForceProblem, X: Any) -> None:
        """Set the fitted attributes from a training."""
        self.encoder_ = training.encoder.eval()
        self.loss_curve_ = np.array(training.state.curve, dtype=np.float64).reshape(-1, 2)
        self.n_epochs_ = training.state.iteration
        Y = self._encode(self.encoder_, training.rows.X)
        self.embedding_ = Y.to(X.device) if is_tensor(X) else to_numpy(Y)
        self.loss_ = float(problem.loss(self.embedding_))

    def _encode(self, encoder: Any, X: Tensor) -> Tensor:
        from .encoder import encode
        from .training import limit_threads

        with limit_threads(self._n_threads()):
            return encode(encoder, X, self._geometry)

    @accepts_cupy
    def transform(self, X: Any) -> Any:
        """Return the float32 positions (m, d) of rows X (m, D), as a tensor on the same device if X is a tensor."""
        check_is_fitted(self, "embedding_")
        rows = _as_rows(X, 1)
        validate_data(self, X, reset=False, skip_check_array=True)
        with self._explain_out_of_memory(X):
            Y = self._encode(self.encoder_, rows)
            return Y if is_tensor(X) else to_numpy(Y)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Train the encoder on X and return the positions (n, d) of the rows of X, as a tensor if X is a tensor."""
        return self.fit(X, y).embedding_

    def to_onnx(self, path: str | Path) -> None:
        """Write the trained encoder to an ONNX file, atomically, for programs without Python or PyTorch.

        The graph has one input "x", float32 rows (m, D) for any m, and one output "y", their positions (m, d); it
        includes the scaling of the rows and, on a sphere, the projection to it. Requires the package onnx. An encoder
        with layers other than those of `eq.save` raises ValueError.

        Parameters
        ----------
        path : str or Path
            File to write; an existing file is replaced.
        """
        check_is_fitted(self, "embedding_")
        from .layers_as_data import as_data
        from .onnx_graph import write_onnx

        write_onnx(path, as_data(self.encoder_), self._geometry, (self.n_features_in_, self.n_columns))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "encoder_" in state:  # the machine that loads it may have no GPU
            state["encoder_"] = deepcopy(state["encoder_"]).cpu()
        if is_tensor(state.get("embedding_")):
            state["embedding_"] = state["embedding_"].cpu()
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the map is float32
        return tags

    def check_parameters(self) -> str:
        """Raise for invalid parameters; return the device, "cpu" or "cuda"."""
        for name in ("epochs", "batch_size"):
            value, minimum = getattr(self, name), 2 if name == "batch_size" else 0
            if not (is_integer(value) and value >= minimum):
                raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
        if not (is_positive(self.learning_rate) and self.learning_rate < LARGEST_RATE):
            raise ValueError(
                f"learning_rate must be a positive number below {LARGEST_RATE:g}, got {self.learning_rate!r}"
            )
        check_callbacks(self.callbacks, self.random_state)
        import_optional("torch", "gpu", "Parametric")
        device = choose_device("torch", self.device)[1]
        from torch.nn import Module

        if not isinstance(self.encoder, Module | None):
            raise ValueError(f"encoder must be a torch.nn.Module or None, got {self.encoder!r}")
        self._check_method()
        return device

    def _check_method(self) -> None:
        from ...objectives.autograd.stochastic import check_objective

        method = self._method()
        if not isinstance(method, Embedding):
            raise ValueError(f"method must be an Embedding such as TSNE() or UMAP(), got {method!r}")
        method.check_parameters()
        check_objective(method.objective_from_rows(PAIR), repr(method))
        for name in ("metric", "affinity"):
            if isinstance(value := getattr(method, name, None), str) and value == "precomputed":
                raise ValueError(
                    f'Parametric needs a table X (n, D), but its method has {name}="precomputed"; use another {name}'
                )
        if is_mixed(getattr(method, "metric", None)):
            raise ValueError(
                f"Parametric needs a table of numbers, but its method has metric={method.metric!r}; encode the columns"
                " as numbers, and use another metric"
            )


def _as_rows(X: Any, min_rows: int) -> Tensor:
    """Return a table (n, D) of at least `min_rows` rows as a float32 tensor on its device; raise if it is invalid."""
    import torch

    if is_space(X):
        raise ValueError("Parametric needs a table X (n, D), but X is a metric space; fit the method itself instead")
    if not is_tensor(X):
        table = check_table(X, min_rows)
        with np.errstate(over="ignore"):
            rows = table.astype(np.float32)
        check_finite(rows, "X in float32")
        return torch.as_tensor(rows)
    if X.ndim != 2 or len(X) < min_rows or X.shape[1] == 0:
        raise ValueError(
            f"X must be a table (n, D) with at least {plural(min_rows, 'row')} and 1 column, got a tensor of shape"
            f" {tuple(X.shape)}"
        )
    if X.layout != torch.strided or X.is_complex():
        kind, advice = ("complex", "X.real") if X.is_complex() else ("sparse", "X.to_dense()")
        raise ValueError(f"X is a {kind} tensor, but a dense tensor of real numbers is needed; use {advice}")
    rows = X.detach().to(torch.float32)
    if not bool(rows.isfinite().all()):
        i, j = (int(k) for k in (~rows.isfinite()).nonzero()[0])
        raise ValueError(
            f"X in float32 contains {float(rows[i, j])} at row {i}, column {j}; drop such rows, fill in missing values,"
            " or rescale X"
        )
    return rows

"""Trains an encoder on batches of a neighbour graph; the seed and the epoch determine all random numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import cos, pi
from threading import Lock, get_ident
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ... import progress
from ..._types import Array, Callback
from ...arrays.namespace import to_numpy
from ...geometry import Geometry
from ...kernels import Kernel
from ...linalg.pca import openmp_threads
from ...objectives.autograd.stochastic import Batch, Stochastic, squared
from ...optimize.descent import Steps
from ...saving.checkpoint import fingerprint
from .batches import Edges, TrainingRows, as_csr, n_batches
from .encoder import encode, to_working


@dataclass(frozen=True)
class Settings:
    """Holds the parameters for training an encoder."""

    epochs: int
    batch_size: int
    learning_rate: float
    exaggeration: float
    seed: int
    threads: int
    print_losses: bool


@dataclass
class TrainingState:
    """Progress of the training; the weights are stored in the encoder, and Adam's moments in the optimiser."""

    iteration: int = 0  # number of completed epochs
    loss: float = np.nan
    curve: list[tuple[int, float]] = field(default_factory=list)
    stopped: str = "n_iter"


class Training(Steps[TrainingState]):
    """Trains an encoder with Adam; one step is an epoch, and the learning rate follows half a cosine down to 0.

    Parameters
    ----------
    encoder : torch.nn.Module
    rows : TrainingRows
    loss : Stochastic
        Estimates the loss from batches.
    geometry : Geometry
    settings : Settings

    Attributes
    ----------
    state : TrainingState
    """

    def __init__(
        self, encoder: nn.Module, rows: TrainingRows, loss: Stochastic, geometry: Geometry, settings: Settings
    ):
        self.encoder = encoder.to(rows.device)
        self.rows, self.loss, self.geometry, self.settings = rows, loss, geometry, settings
        self.batch_size = min(settings.batch_size, len(rows))
        A = as_csr(loss.A)
        self.edges = Edges(A, rows.device)
        trained = [p for p in encoder.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=settings.learning_rate)
        self.state = TrainingState()
        self._weights = A
        self._epoch_loss = np.nan

    def start_progress(self, n_iter: int, done: int) -> list[Callback]:
        progress.stage("encoder", n_iter, "epochs")
        self._advance = progress.advance_callback()
        self._advance(done)
        return []

    def is_report_due(self, state: TrainingState, n_iter: int) -> bool:
        return state.iteration > 0

    def evaluate(self, state: TrainingState, loss: bool) -> float:
        return self._epoch_loss

    def check_loss(self, state: TrainingState, loss: float) -> None:
        if not np.isfinite(loss):
            raise FloatingPointError(
                f"the loss is {loss} in epoch {state.iteration}; lower learning_rate, or use an encoder with smaller"
                " initial outputs"
            )

    def on_report(self, state: TrainingState) -> None:
        self._advance(1)
        if self.settings.print_losses:
            print(f"epoch {state.iteration:5d}   loss {state.loss:.6f}", flush=True)

    def move(self, state: TrainingState) -> bool:
        """Train for one epoch; the global random state of PyTorch is unchanged afterwards."""
        with seeded(self.settings.threads, self._seed(state.iteration), self.rows.device):
            self._pass(state.iteration)
        self._epoch_loss = self.loss.loss_so_far()
        state.iteration += 1
        return True

    def current_map(self, state: TrainingState) -> Array:
        with limit_threads(self.settings.threads):
            Y = to_numpy(encode(self.encoder, self.rows.X, self.geometry))
        Y.flags.writeable = False
        return Y

    def _seed(self, epoch: int) -> int:
        return int(np.random.SeedSequence([self.settings.seed, epoch]).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def _pass(self, epoch: int) -> None:
        """Take one optimiser step for each batch of an epoch; every point contributes one edge."""
        settings = self.settings
        generator = torch.Generator(self.rows.device).manual_seed(self._seed(epoch))
        in_epoch = n_batches(self.edges.n, self.batch_size)
        self.encoder.train()
        for number, (heads, tails, weights) in enumerate(self.edges.batches(self.batch_size, generator)):
            part = (epoch + number / in_epoch) / settings.epochs
            for group in self.optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 + cos(pi * part)) / 2
            self.optimizer.zero_grad()
            torch.autograd.backward(self._value(heads, tails, weights))
            self.optimizer.step()

    def _value(self, heads: Tensor, tails: Tensor, weights: Tensor) -> Tensor:
        U = to_working(self.encoder(self.rows[torch.cat([heads, tails])]), self.geometry)
        U, V = U.chunk(2)
        d2 = squared(U - V)
        scaled = (weights * (self.edges.n / len(heads))).to(d2.dtype)
        return self.loss.linearized(Batch(self.edges.n, heads, U, d2, scaled), self.settings.exaggeration)

    def describe(self) -> dict[str, Any]:
        """Return the values that determine a run, or fingerprints (hashes) of them; error messages quote the keys."""
        A, objective, settings = self._weights, self.loss.objective, self.settings
        numbers = {name: value for name, value in vars(objective).items() if isinstance(value, int | float | Kernel)}
        return {
            "data": fingerprint(to_numpy(self.rows.X)),
            "affinities": fingerprint(A.data, A.indices, A.indptr),
            "loss": fingerprint(type(objective), numbers, settings.exaggeration),
            "encoder": fingerprint(repr(self.encoder)),
            "map": fingerprint(self.geometry),
            "epochs": settings.epochs,
            "batch_size": self.batch_size,
            "learning_rate": settings.learning_rate,
            "random_state": settings.seed,
            "device": self.rows.device.type,
            "version of PyTorch": str(torch.__version__),
        }

    def plain(self) -> dict[str, Any]:
        """Return the state needed to resume, in values that saving/archive.py can write."""
        epoch, curve = self.state.iteration, [list(entry) for entry in self.state.curve]
        if not curve or curve[-1][0] < epoch:  # the loss of this epoch is reported after it is saved
            curve.append([epoch, self._epoch_loss])
        return {
            "epoch": epoch,
            "curve": curve,
            "encoder": to_arrays(self.encoder.state_dict()),
            "optimizer": [to_arrays(self.optimizer.state[p]) for p in self.optimizer.param_groups[0]["params"]],
            "loss": to_arrays(self.loss.state()),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore the values returned by `plain`."""
        self.state.iteration = saved["epoch"]
        self.state.curve = [(int(epoch), float(loss)) for epoch, loss in saved["curve"]]
        self.encoder.load_state_dict({name: torch.as_tensor(value) for name, value in saved["encoder"].items()})
        moments = {number: _to_tensors(values) for number, values in enumerate(saved["optimizer"])}
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        for name, tensor in self.loss.state().items():
            tensor.copy_(torch.as_tensor(saved["loss"][name]))


def to_arrays(state: Any) -> dict[str, Any]:
    """Return a dict of tensors as a dict of NumPy arrays."""
    return {str(name): to_numpy(value.detach()).copy() for name, value in state.items()}


def _to_tensors(values: dict[str, Any]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(value) for name, value in values.items()}


class _SharedThreads:
    """Remembers how many threads PyTorch used before `limit_threads`, so that this number can be restored.

    Several threads of the program can be in contexts of `limit_threads` at the same time. The first of them finds the
    number to restore; the others find the limit that another thread has set.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all contexts and create a new lock.

        This method is called in a forked process. The other threads of the parent do not exist there, but one of them
        may have held the lock.
        """
        self.lock = Lock()
        self.inside: set[int] = set()  # threads of the program
        self.before = 1

    def enter(self, threads: int) -> tuple[int, bool]:
        """Limit PyTorch to `threads` threads. Return the number to restore, and whether the caller was in a context."""
        with self.lock:
            found, nested = torch.get_num_threads(), get_ident() in self.inside
            if not self.inside:
                self.before = found
            self.inside.add(get_ident())
            torch.set_num_threads(openmp_threads(threads))
            return found if nested else self.before, nested

    def leave(self, before: int, nested: bool) -> None:
        with self.lock:
            if not nested:
                self.inside.discard(get_ident())
            torch.set_num_threads(openmp_threads(before))


_shared = _SharedThreads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.reset)


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Limit PyTorch to `threads` threads within the context; several threads of the program can enter it."""
    before, nested = _shared.enter(threads)
    try:
        yield
    finally:
        _shared.leave(before, nested)


@contextmanager
def seeded(threads: int, seed: int, device: torch.device) -> Iterator[None]:
    """Seed PyTorch's global random generator, which dropout uses, and limit PyTorch's threads; restore both on exit."""
    with limit_threads(threads), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        yield

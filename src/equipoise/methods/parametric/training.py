"""Training an encoder on batches of a neighbour graph, each epoch a function of the seed and its number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import cos, pi
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...arrays.namespace import host
from ...geometry import Geometry
from ...kernels import Kernel
from ...objectives.autograd.stochastic import Batch, Stochastic, squared
from ...saving.checkpoint import digest
from .batches import Edges, TrainingRows, as_csr, n_batches
from .encoder import working


class Training:
    """An encoder on its way: Adam, with a rate that falls to 0 as half a cosine.

    Attributes
    ----------
    epoch : epochs done
    curve : (epoch, loss) of each, the loss estimated from its batches
    """

    def __init__(
        self,
        encoder: nn.Module,
        rows: TrainingRows,
        loss: Stochastic,
        geometry: Geometry,
        *,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        exaggeration: float,
        seed: int,
    ):
        self.encoder = encoder.to(rows.device)
        self.rows, self.loss, self.geometry = rows, loss, geometry
        self.epochs, self.learning_rate, self.exaggeration, self.seed = epochs, learning_rate, exaggeration, seed
        self.batch_size = min(batch_size, len(rows))
        A = as_csr(loss.A)
        self.edges = Edges(A, rows.device)
        self.optimizer = torch.optim.Adam([p for p in encoder.parameters() if p.requires_grad], lr=learning_rate)
        self.epoch = 0
        self.curve: list[tuple[int, float]] = []
        self._weights = A

    def run(self, threads: int) -> Iterator[tuple[int, float]]:
        """Train, and yield the number of each epoch and its loss; the user's random numbers are as if it were not."""
        while self.epoch < self.epochs:
            with borrowed(threads, self._seed(self.epoch), self.rows.device):
                self._pass()
            self.epoch += 1
            loss = self.loss.loss_so_far()
            self.curve.append((self.epoch, loss))
            if not np.isfinite(loss):
                raise FloatingPointError(
                    f"the loss is {loss} in epoch {self.epoch}: lower learning_rate, or let the encoder begin with a"
                    " smaller map"
                )
            yield self.epoch, loss

    def _seed(self, epoch: int) -> int:
        return int(np.random.SeedSequence([self.seed, epoch]).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def _pass(self) -> None:
        """See every point once as the head of an edge."""
        generator = torch.Generator(self.rows.device).manual_seed(self._seed(self.epoch))
        in_epoch = n_batches(self.edges.n, self.batch_size)
        self.encoder.train()
        for number, (heads, tails, weights) in enumerate(self.edges.batches(self.batch_size, generator)):
            part = (self.epoch + number / in_epoch) / self.epochs
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate * (1 + cos(pi * part)) / 2
            self.optimizer.zero_grad()
            torch.autograd.backward(self._value(heads, tails, weights))
            self.optimizer.step()

    def _value(self, heads: Tensor, tails: Tensor, weights: Tensor) -> Tensor:
        U = working(self.encoder(self.rows[torch.cat([heads, tails])]), self.geometry)
        U, V = U.chunk(2)
        d2 = squared(U - V)
        scaled = (weights * (self.edges.n / len(heads))).to(d2.dtype)
        return self.loss.linearized(Batch(self.edges.n, heads, U, d2, scaled), self.exaggeration)

    def about(self) -> dict[str, Any]:
        """Return what makes the run what it is, before it begins, under names that a person knows."""
        A, objective = self._weights, self.loss.objective
        numbers = {name: value for name, value in vars(objective).items() if isinstance(value, int | float | Kernel)}
        return {
            "data": digest(host(self.rows.X)),
            "affinities": digest(A.data, A.indices, A.indptr),
            "loss": digest(type(objective), numbers, self.exaggeration),
            "encoder": digest(repr(self.encoder)),
            "map": digest(self.geometry),
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "random_state": self.seed,
            "device": self.rows.device.type,
            "version of PyTorch": str(torch.__version__),
        }

    def plain(self) -> dict[str, Any]:
        """Return all that going on takes, in values that archive.py writes."""
        return {
            "epoch": self.epoch,
            "curve": [list(entry) for entry in self.curve],
            "encoder": plain(self.encoder.state_dict()),
            "optimizer": [plain(self.optimizer.state[p]) for p in self.optimizer.param_groups[0]["params"]],
            "loss": plain(self.loss.state()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `plain` returned."""
        self.epoch, self.curve = state["epoch"], [(int(epoch), float(loss)) for epoch, loss in state["curve"]]
        self.encoder.load_state_dict({name: torch.as_tensor(value) for name, value in state["encoder"].items()})
        kept = {number: _tensors(values) for number, values in enumerate(state["optimizer"])}
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": kept})
        for name, tensor in self.loss.state().items():
            tensor.copy_(torch.as_tensor(state["loss"][name]))


def plain(state: Any) -> dict[str, Any]:
    """Return a dict of tensors as one of arrays."""
    return {str(name): host(value.detach()).copy() for name, value in state.items()}


def _tensors(values: dict[str, Any]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(value) for name, value in values.items()}


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Let PyTorch use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def borrowed(threads: int, seed: int, device: torch.device) -> Iterator[None]:
    """Seed PyTorch's own random numbers, which dropout draws, and set its threads; both are given back as they were."""
    with limited(threads), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        yield

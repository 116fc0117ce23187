"""Runs of Parametric: checkpoints, Ctrl-C and callbacks."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support.parametric_cases import METHODS, X, small

import equipoise as eq
from equipoise.inputs import table
from equipoise.saving import neighbors_cache

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


class Stop:
    """Callback that raises KeyboardInterrupt, or returns True, after `epoch` epochs."""

    def __init__(self, epoch, interrupt=True):
        self.epoch, self.interrupt, self.seen = epoch, interrupt, []

    def __call__(self, epoch, loss, Y):
        self.seen.append((epoch, loss, Y))
        if epoch == self.epoch and self.interrupt:
            raise KeyboardInterrupt
        return epoch == self.epoch


@pytest.mark.parametrize("name", ["TSNE", "SNE", "UMAP"])
def test_resumed_run_gives_the_same_bytes(name, tmp_path):
    method, path = METHODS[name], tmp_path / "run.eqc"
    full = small(method, epochs=9).fit(X)
    stopped = small(method, epochs=9, callbacks=[eq.Checkpoint(path, every=2), Stop(5)])
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X)
    assert stopped.n_epochs_ == 5 and np.array_equal(stopped.transform(X), stopped.embedding_)
    resumed = small(method, epochs=9, callbacks=[eq.Checkpoint(path, every=2, resume=True)]).fit(X)
    assert resumed.embedding_.tobytes() == full.embedding_.tobytes()
    assert resumed.loss_curve_.tobytes() == full.loss_curve_.tobytes() and resumed.loss_ == full.loss_
    assert [p.name for p in tmp_path.iterdir()] == ["run.eqc"]


def test_checkpoint_saves_the_neighbours(tmp_path, monkeypatch):
    monkeypatch.setattr(neighbors_cache, "MIN_POINTS", 50)
    method, path = eq.TSNE(perplexity=8, engine="grid"), tmp_path / "run.eqc"
    full = small(method, callbacks=[eq.Checkpoint(path, every=4)]).fit(X)
    monkeypatch.setattr(table, "nearest_neighbors", lambda *_, **__: pytest.fail("neighbours were searched again"))
    resumed = small(method, callbacks=[eq.Checkpoint(path, every=4, resume=True)]).fit(X)
    assert resumed.embedding_.tobytes() == full.embedding_.tobytes()


class InterruptingLayer(torch.nn.Linear):
    """Linear layer that raises KeyboardInterrupt in its fifth training batch."""

    calls = 0

    def forward(self, x):
        self.calls += self.training
        if self.training and self.calls == 5:
            raise KeyboardInterrupt
        return super().forward(x)


def test_interrupt_within_an_epoch_leaves_a_usable_encoder():
    encoder, threads = small(encoder=InterruptingLayer(6, 2)), torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        encoder.fit(X)
    assert encoder.n_epochs_ == 1 and torch.get_num_threads() == threads
    assert np.array_equal(encoder.transform(X), encoder.embedding_) and np.isfinite(encoder.loss_)


def test_checkpoint_of_a_different_run_is_rejected(tmp_path):
    path = tmp_path / "run.eqc"
    small(callbacks=[eq.Checkpoint(path, every=2)]).fit(X)
    on = [eq.Checkpoint(path, resume=True)]
    for change, data, what in (
        ({"epochs": 8}, X, "it differs in epochs"),
        ({"batch_size": 16}, X, "it differs in batch_size"),
        ({"learning_rate": 1e-3}, X, "it differs in learning_rate"),
        ({"random_state": 1}, X, "it differs in random_state"),
        ({"epochs": 8, "batch_size": 16}, X, "it differs in epochs, batch_size"),
        ({"method": eq.TSNE(perplexity=9)}, X, "it differs in affinities, loss"),
        ({"method": eq.TSNE(perplexity=8, dof=2.0)}, X, "it differs in loss"),
        ({}, 2 * X, "it differs in .*data"),
        ({"encoder": torch.nn.Linear(6, 2)}, X, "it differs in encoder"),
    ):
        with pytest.raises(ValueError, match=f"another run: {what};"):
            small(callbacks=on, **change).fit(data)
    with pytest.raises(ValueError, match="another run"):
        eq.TSNE(perplexity=8, random_state=0, callbacks=on).fit(X)
    with pytest.raises(ValueError, match="requires an integer random_state, got None"):
        small(random_state=None, callbacks=on).fit(X)


def test_callbacks_get_the_map_and_stop_the_run():
    stop = Stop(3, interrupt=False)
    encoder = small(callbacks=[stop]).fit(X)
    assert encoder.n_epochs_ == 3 and len(encoder.loss_curve_) == 3
    assert [(epoch, loss) for epoch, loss, _ in stop.seen] == [tuple(row) for row in encoder.loss_curve_]
    assert np.array_equal(stop.seen[-1][2], encoder.embedding_) and not stop.seen[0][2].flags.writeable


def test_sparse_and_complex_tensors_are_refused():
    for X_, kind in ((torch.eye(20).to_sparse(), "sparse"), (torch.eye(20, dtype=torch.complex64), "complex")):
        with pytest.raises(ValueError, match=f"X is a {kind} tensor, but a dense tensor of real"):
            small().fit(X_)


def test_verbose_must_be_a_number():
    with pytest.raises(ValueError, match=r"verbose must be an integer, got array\("):
        small(verbose=np.ones(2)).fit(X)


def test_verbose_prints_the_loss_without_a_progress_bar(capsys):
    small(verbose=1, epochs=2).fit(X)
    assert capsys.readouterr().out.count("epoch") == 2


def test_overlapping_limits_restore_the_number_of_threads_from_before_the_first():
    from equipoise.methods.parametric.training import limit_threads

    entered, leave, found = threading.Event(), threading.Event(), []

    def hold():
        with limit_threads(1):
            entered.set()
            assert leave.wait(60)
        found.append(torch.get_num_threads())

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        other = threading.Thread(target=hold)
        later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        with limit_threads(2):
            with limit_threads(1):
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 2
            other.start()  # its first call of PyTorch: it inherits the limit
            assert entered.wait(60)
        assert torch.get_num_threads() == 3
        leave.set()
        other.join()
        later.start()
        later.join()
        assert found == [3, 3]
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("place", ["training.Training.move", "training.Training.__init__", "encoder.encode"])
def test_out_of_memory_error_names_the_batch_size(place, monkeypatch):
    def raise_out_of_memory(*arguments):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(f"equipoise.methods.parametric.{place}", raise_out_of_memory)
    needed = r"^GPU out of memory: Parametric with \d+ rows of \d+ columns needs about 0\.\d+ GB"
    with pytest.raises(MemoryError, match=rf'{needed}.* a smaller batch_size or encoder, or device="cpu"\.$'):
        small(epochs=1).fit(X)


def test_out_of_memory_in_transform_raises_memory_error(monkeypatch):
    def raise_out_of_memory(*arguments):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    encoder = small(epochs=1).fit(X)
    monkeypatch.setattr("equipoise.methods.parametric.encoder.encode", raise_out_of_memory)
    with pytest.raises(MemoryError, match="GPU out of memory: Parametric with 3 rows"):
        encoder.transform(X[:3])

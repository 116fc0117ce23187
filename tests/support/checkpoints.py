"""Short fits that tests interrupt and resume."""

from __future__ import annotations

from sklearn.datasets import make_blobs

import equipoise as eq
from support.methods import iterative

X, _ = make_blobs(60, 5, centers=4, cluster_std=5.0, random_state=0)


def brief(Method, **parameters):
    """Return an iterative method that reports every ten iterations and does not stop before the last."""
    settings = {"n_iter": 40, "optimizer": eq.Momentum(every=10, min_loss_change=0)}
    settings["tol"] = 0.01 if issubclass(Method, eq.Embedding) else 1e-9
    return iterative(Method, **{**settings, **parameters})


class Interrupt:
    """A callback that counts its calls and raises KeyboardInterrupt at call `last`."""

    def __init__(self, last=None):
        self.calls, self.last = 0, last

    def __call__(self, iteration, loss, Y):
        self.calls += 1
        if self.calls == self.last:
            raise KeyboardInterrupt


def assert_same(one, two):
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.loss_curve_.tobytes() == two.loss_curve_.tobytes()
    assert one.n_iter_ == two.n_iter_ and one.loss_ == two.loss_

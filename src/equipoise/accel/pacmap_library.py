"""PaCMAP, which Equipoise does not answer: its calls are recorded with the reason."""

from __future__ import annotations

from typing import Any, NoReturn

from .calls import NotAvailable


def fit(estimator: Any, *args: Any, **settings: Any) -> NoReturn:
    """Refuse pacmap.PaCMAP.fit; docs/pair_losses.md says why no sum over pairs of one kind gives its loss."""
    raise NotAvailable("no method of Equipoise has PaCMAP's loss")

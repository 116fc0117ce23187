"""The embedding methods: one class per method, with the interface of a scikit-learn estimator."""

from __future__ import annotations

from .._lazy import import_lazily

__all__ = import_lazily(__name__)

"""Real data sets that come with scikit-learn, under one name each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets

from .._types import Array

DATASETS = {
    "digits": "1,797 handwritten digits, 8 × 8 pixels, 10 classes",
    "iris": "150 iris flowers, 4 measurements, 3 species",
    "wine": "178 wines, 13 chemical measurements, 3 cultivars",
    "breast_cancer": "569 biopsies, 30 measurements of cell nuclei, 2 diagnoses",
}


@dataclass(frozen=True)
class Dataset:
    """A table X (n, D), a class number per row, and the names of the classes."""

    name: str
    X: Array
    labels: Any  # (n,) class numbers, or None
    classes: tuple[str, ...]


def load(name: str) -> Dataset:
    """Return a bundled data set; columns in mixed units (wine, breast_cancer) are standardised."""
    if name not in DATASETS:
        raise ValueError(f"no bundled data set is called {name!r}; there are: {', '.join(DATASETS)}")
    bunch = getattr(datasets, f"load_{name}")()
    X = np.asarray(bunch.data, dtype=np.float64)
    if name in ("wine", "breast_cancer"):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Dataset(name, X, np.asarray(bunch.target), tuple(str(c) for c in bunch.target_names))

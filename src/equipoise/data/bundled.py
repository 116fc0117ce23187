"""Real data sets that come with scikit-learn, under one name each."""

from __future__ import annotations

import numpy as np
from sklearn import datasets

from .dataset import Dataset

BUNDLED = {
    "digits": "1,797 handwritten digits, 8 × 8 pixels, 10 classes",
    "iris": "150 iris flowers, 4 measurements, 3 species",
    "wine": "178 wines, 13 chemical measurements, 3 cultivars",
    "breast_cancer": "569 biopsies, 30 measurements of cell nuclei, 2 diagnoses",
}


def load_bundled(name: str) -> Dataset:
    """Return a bundled data set; columns in mixed units (wine, breast_cancer) are standardised."""
    bunch = getattr(datasets, f"load_{name}")()
    X = np.asarray(bunch.data, dtype=np.float64)
    if name in ("wine", "breast_cancer"):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Dataset(name, X, np.asarray(bunch.target), tuple(str(c) for c in bunch.target_names))

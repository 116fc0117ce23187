"""Load data sets by name: real ones bundled with scikit-learn, and toy shapes."""

from __future__ import annotations

import numpy as np

from .._suggest import did_you_mean
from .dataset import Dataset
from .toys import TOYS

BUNDLED = {
    "digits": "1,797 handwritten digits, 8 × 8 pixels, 10 classes",
    "iris": "150 iris flowers, 4 measurements, 3 species",
    "wine": "178 wines, 13 chemical measurements, 3 cultivars",
    "breast_cancer": "569 biopsies, 30 measurements of cell nuclei, 2 diagnoses",
}


def load_bundled(name: str) -> Dataset:
    """Return a bundled data set; wine and breast_cancer, whose columns have mixed units, are standardised."""
    from sklearn import datasets  # slow to import

    bunch = getattr(datasets, f"load_{name}")()
    X = np.asarray(bunch.data, dtype=np.float64)
    if name in ("wine", "breast_cancer"):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    shape = bunch.images.shape[1:] if "images" in bunch else ()
    classes = tuple(str(c) for c in bunch.target_names)
    return Dataset(name, X, np.asarray(bunch.target), classes, image_shape=shape)


DATASETS = {**BUNDLED, **{name: toy.description for name, toy in TOYS.items()}}


def load(name: str) -> Dataset:
    """Return a named data set.

    Parameters
    ----------
    name : str
        A key of `DATASETS`. Toy shapes are generated at their default size with seed 0.
    """
    if name in TOYS:
        return TOYS[name].make()
    if name not in BUNDLED:
        what = did_you_mean(str(name), DATASETS, f"choose from {', '.join(DATASETS)}")
        raise ValueError(f"unknown data set {name!r}; {what}")
    return load_bundled(name)

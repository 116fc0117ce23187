"""Every data set that has a name: real ones and toy shapes."""

from __future__ import annotations

import numpy as np
from sklearn import datasets

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
    """Return a bundled data set; columns in mixed units (wine, breast_cancer) are standardised."""
    bunch = getattr(datasets, f"load_{name}")()
    X = np.asarray(bunch.data, dtype=np.float64)
    if name in ("wine", "breast_cancer"):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Dataset(name, X, np.asarray(bunch.target), tuple(str(c) for c in bunch.target_names))


DATASETS = {**BUNDLED, **{name: toy.description for name, toy in TOYS.items()}}


def load(name: str) -> Dataset:
    """Return a data set by its name, one of `DATASETS`; toy shapes at their usual size, with the seed 0."""
    if name in TOYS:
        return TOYS[name].make()
    if name not in BUNDLED:
        what = did_you_mean(str(name), DATASETS, f"there are: {', '.join(DATASETS)}")
        raise ValueError(f"no data set is called {name!r}; {what}")
    return load_bundled(name)

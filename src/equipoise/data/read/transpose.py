"""Exchange the rows and columns of a data set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from ..dataset import Dataset
from .selection import list_names


def transpose(dataset: Dataset, source: str) -> Dataset:
    """Return a data set whose rows are the columns of another; row names become column names, and vice versa.

    Raise if the data set has classes or further columns, which would become rows that are not numbers.
    """
    others = [*dataset.extra, *([] if dataset.labels is None else [dataset.label])]
    if others:
        raise ValueError(
            f"{source} cannot be transposed with the columns {list_names(others)}, which are not embedded; select the"
            " columns to embed and the column of row names (`id`) in a file without further columns"
        )
    X = sparse.csr_matrix(dataset.X.T) if sparse.issparse(dataset.X) else np.ascontiguousarray(dataset.X.T)
    columns = () if dataset.ids is None else tuple(map(str, dataset.ids))
    ids = np.array(dataset.columns, dtype=object) if dataset.columns else None
    return replace(dataset, X=X, columns=columns, ids=ids, image_shape=())

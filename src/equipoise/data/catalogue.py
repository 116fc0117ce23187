"""Every data set that has a name: real ones and toy shapes."""

from __future__ import annotations

from ..near import hint
from .bundled import BUNDLED, load_bundled
from .dataset import Dataset
from .toys import TOYS

DATASETS = {**BUNDLED, **{name: toy.description for name, toy in TOYS.items()}}


def load(name: str) -> Dataset:
    """Return a data set by its name, one of `DATASETS`; toy shapes at their usual size, with the seed 0."""
    if name in TOYS:
        return TOYS[name].make()
    if name not in BUNDLED:
        what = hint(str(name), DATASETS, f"there are: {', '.join(DATASETS)}")
        raise ValueError(f"no data set is called {name!r}; {what}")
    return load_bundled(name)

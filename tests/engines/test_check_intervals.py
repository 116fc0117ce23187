"""When the tolerance of a mesh is checked again: after a small change of the box, or an octave if the error is tiny."""

import numpy as np
import pytest

from equipoise.engines.mesh.mesh_engine import HIGHEST, Grid
from equipoise.kernels import StudentT


@pytest.fixture
def checked(monkeypatch):
    """The sizes of the maps whose tolerance was checked, and a function that computes the field of a map of a size."""
    sizes, Y = [], np.random.RandomState(0).uniform(-0.5, 0.5, (500, 2))
    engine, meet = Grid(1, 0.01), Grid._meet_tolerance

    def count(self, kernel, source, record):
        sizes.append(float((source.high - source.low).max()))
        return meet(self, kernel, source, record)

    monkeypatch.setattr(Grid, "_meet_tolerance", count)
    return sizes, lambda size: engine.field(Y * size, StudentT()), engine


def test_a_map_much_smaller_than_the_kernel_is_checked_once_an_octave(checked):
    sizes, field, engine = checked
    for size in 0.001 * 2 ** np.linspace(0, 4, 33):
        field(size)
    (record,) = engine._records.values()
    assert record.ample and record.level == HIGHEST
    assert len(sizes) == 5  # the first one and one for each octave
    assert np.diff(np.log2(sizes)) == pytest.approx(1, abs=0.26)


def test_a_map_larger_than_the_kernel_is_checked_at_every_rung(checked):
    sizes, field, engine = checked
    for size in 30 * 2 ** np.linspace(0, 1, 9):
        field(size)
    (record,) = engine._records.values()
    assert not record.ample
    assert len(sizes) >= engine.RUNGS


@pytest.mark.parametrize("clustered", [False, True])
def test_errors_stay_within_the_tolerance_between_the_checks_of_small_maps(checked, clustered):
    """Also where clusters form while the box keeps its size."""
    engine = checked[2]
    Y = np.random.RandomState(0).uniform(-0.5, 0.5, (500, 2))
    centers = np.random.RandomState(1).uniform(-0.5, 0.5, (10, 2))[np.arange(500) % 10]
    for step, size in enumerate(0.01 * 2 ** np.linspace(0, 7, 15)):
        share = step / 15 if clustered else 0.0
        map_ = size * ((1 - share) * Y + share * centers)
        found = engine.field(map_, StudentT()).gradient
        diff = map_[:, None] - map_[None]
        true = -2 * (diff / ((1 + (diff**2).sum(axis=2)) ** 2)[..., None]).sum(axis=1)
        assert np.linalg.norm(found - true) < 0.01 * np.linalg.norm(true)

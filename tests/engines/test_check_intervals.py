"""When the tolerance of a mesh is checked again: after a small change of the box, or an octave if the error is tiny."""

import numpy as np
import pytest

from equipoise.engines.mesh.mesh_engine import AMPLE, HIGHEST, Grid
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


def test_errors_stay_within_the_tolerance_between_the_checks_of_small_maps(checked):
    _, field, _ = checked
    Y = np.random.RandomState(0).uniform(-0.5, 0.5, (500, 2))
    for size in 0.01 * 2 ** np.linspace(0, 7, 15):
        found = field(size).gradient
        diff = size * (Y[:, None] - Y[None])
        true = -2 * (diff / ((1 + (diff**2).sum(axis=2)) ** 2)[..., None]).sum(axis=1)
        assert np.linalg.norm(found - true) < 0.01 * np.linalg.norm(true)
    assert 0 < AMPLE * 2**6 < 1  # a mesh just below AMPLE still meets the tolerance after an octave

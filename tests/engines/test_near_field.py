"""Near fields whose sources are sorted into cells once."""

import numpy as np
import pytest

from equipoise import _core
from equipoise.engines.mesh.plan import near_table
from equipoise.kernels import StudentT

MESH = np.zeros(2), 1.0, np.array([8, 8])  # origin, h, size


@pytest.mark.parametrize(
    ("targets", "Y", "charges", "potential", "gradient", "message"),
    [
        ((4, 2), (5, 3), (5, 1), (4, 1), (4, 1, 2), "Y must have one column per axis"),
        ((4, 3), (5, 2), (5, 1), (4, 1), (4, 1, 3), "targets must have one column per axis"),
        ((4, 2), (5, 2), (4, 1), (4, 1), (4, 1, 2), r"charges must have shape \(n, m\)"),
        ((4, 2), (0, 2), (0, 70000), (4, 1), (4, 1, 2), "at most 65536 charges per point"),
        ((4, 2), (5, 2), (5, 1), (5, 1), (4, 1, 2), r"potential must have shape \(n_targets, m\)"),
        ((4, 2), (5, 2), (5, 2), (4, 2), (4, 1, 2), "half_gradient must have shape"),
    ],
)
def test_near_fields_check_array_shapes(targets, Y, charges, potential, gradient, message):
    table = np.zeros((1, 4), np.float32), 0, 1.0
    with pytest.raises(ValueError, match=message):
        field = _core.NearField64(_core.Mesh(*MESH), *table, np.zeros(Y), np.ones(charges), 1)
        _core.near_at(field, np.zeros(targets), np.empty(potential), np.empty(gradient), 1)


def test_near_fields_have_a_limited_number_of_cells():
    cells, table = _core.Mesh(np.zeros(2), 1.0, np.array([2**20, 2**20])), (np.zeros((1, 4), np.float32), 0, 1.0)
    with pytest.raises(ValueError, match=r"the near field must have at most 2\^28 cells"):
        _core.NearField64(cells, *table, np.zeros((5, 2)), np.ones((5, 1)), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_sorted_sources_give_the_bytes_of_the_near_field(rng, d, dtype):
    Y, targets = (rng.uniform(0, 6, (n, d)).astype(dtype) for n in (700, 90))
    charges, table = rng.standard_normal((700, 2)), near_table(StudentT(), 1.0)
    cells = _core.Mesh(np.zeros(d), 1.0, np.full(d, 6))
    kind = _core.NearField32 if dtype == np.float32 else _core.NearField64
    results = []
    for threads in (1, 2, 3, 4):
        field = kind(cells, *table, Y, charges, threads)
        for part in (slice(90), slice(1), slice(40, 47)):
            sums, sorted_sums = ([np.ones((90, 2)), np.ones((90, 2, d))] for _ in range(2))
            _core.near(cells, *table, targets[part], Y, charges, *(s[part] for s in sums), threads)
            _core.near_at(field, targets[part], *(s[part] for s in sorted_sums), threads)
            assert np.ptp(sums[0]) > 0
            for found, expected in zip(sorted_sums, sums, strict=True):
                assert found.tobytes() == expected.tobytes()
        results.append(b"".join(s.tobytes() for s in sorted_sums))
    assert len(set(results)) == 1

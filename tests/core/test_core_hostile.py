"""Hostile calls of every function of the compiled core return or raise; .ci/sanitize runs them under sanitizers."""

import inspect

import numpy as np
import pytest
from support.cases import misaligned
from support.core_calls import TETRAHEDRON, N, graph, mesh, table, valid_calls

from equipoise import _core

CALLS = list(valid_calls())
NAMES = sorted({name for name, _ in CALLS})
HUGE = 2**40

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in cast:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:nanobind. attempted to access an uninitialized instance:RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def keep_instruction_set():
    yield
    _core.use_base_instruction_set(False)


def resolve(name):
    target = _core
    for part in name.split("."):
        target = getattr(target, part)
    return target


def fresh(arguments):
    """Return the arguments with copies of arrays, so that calls do not see what others wrote."""
    return {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in arguments.items()}


def call(name, arguments):
    """Call a function; it may return, or refuse its arguments."""
    try:
        resolve(name)(**arguments)
    except (ValueError, TypeError, MemoryError):
        return False
    return True


def broken_arrays(a):
    """Generate arrays in place of a valid one: other sizes, types, layouts and values."""
    yield from (a[:-1], a[:0], np.concatenate([a, a]), a[None], a.ravel(), a.dtype.type(1), misaligned(a), a[::-1])
    yield np.asfortranarray(a) if a.ndim > 1 else np.repeat(a, 2)[::2]
    for shape in ((0, HUGE), (HUGE, 0), (0, HUGE, 0), (HUGE, 0, 0), (0,), (0, 0), (0, 0, 0), (1,), (1, 1), (1, 1, 1)):
        yield np.zeros(shape, a.dtype)
    if a.ndim > 1:
        yield from (np.ascontiguousarray(a[:, :-1]), np.ascontiguousarray(a[:, :0]), np.concatenate([a, a], axis=1))
        if len(a) <= N and a.shape[1] <= 3:  # a map, not data
            yield np.ones((len(a), 70000, *a.shape[2:]), a.dtype)
    for dtype in (np.int8, np.int32, np.int64, np.float16, np.float32, np.float64, object, ">f8", "U3"):
        if np.dtype(dtype) != a.dtype:
            yield a.astype(dtype)
    read_only = a.copy()
    read_only.flags.writeable = False
    yield read_only
    limits = np.iinfo(a.dtype) if a.dtype.kind in "iu" else np.finfo(a.dtype)
    special = [0, 1, -1, N, limits.min, limits.max] if a.dtype.kind == "i" else [0, 1, limits.max, limits.min]
    if a.dtype.kind == "f":
        special += [np.nan, np.inf, -np.inf, -1.0, limits.tiny, 1e9, 3e9, 1e19]
    for value in special:
        yield np.full_like(a, value)
        some = a.copy()
        some.reshape(-1)[: max(1, a.size // 3)] = value
        yield some
        last = a.copy()
        last.reshape(-1)[-1:] = value
        yield last


def broken_objects():
    """Return objects of the core that do not fit, or were never initialised."""
    matrices = [graph(n, k) for n, k in ((N, 1), (N, 0), (N - 1, 3), (N + 1, 3), (1, 0))]
    empty = _core.Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), 0)
    wide = _core.Csr(np.zeros(N + 1, np.int64), np.zeros(0, np.int32), HUGE)
    full = _core.Csr(np.arange(0, N * N + 1, N), np.tile(np.arange(N, dtype=np.int32), N), N)
    meshes = [mesh(*size) for size in ((1,), (5,), (6,), (8,), (5, 8), (8, 5), (1, 1), (6, 6), (2, 3, 5), (6, 6, 6))]
    meshes += [mesh(2**20, 2**20), mesh(2**40), mesh(2**13, 2**13, 2**13)]
    meshes += [
        _core.Mesh(np.full(d, origin), h, np.full(d, 8))
        for d in (1, 2)
        for origin in (-1e300, 1e300)
        for h in (1e-300, 1.0)
    ]
    kernels = [
        _core.Kernel.shifted_power(*abc) for abc in ((np.nan, 1.0, 1.0), (0.0, 0.0, 0.0), (-1e300, 1e300, 1e300))
    ]
    kernels += [_core.Kernel.regularized_power(0.0, -1.0, np.inf), _core.Kernel.clamped_power(-1.0, np.nan)]
    one = np.ones((1, 4), np.float32)
    kernels += [
        _core.Kernel.tabulated(one, first, scale) for first in (0, 16319) for scale in (np.nan, -1.0, 0.0, np.inf)
    ]
    kernels += [_core.Misfit.logarithmic(16, 1e-300), _core.Misfit.relative(1, np.inf, True, True)]
    unset = [kind.__new__(kind) for kind in (_core.Csr, _core.Mesh, _core.Misfit, _core.Space)]
    spaces = [_core.Space.torus(np.ones(d)) for d in (0, 1, 2, 3, 5)] + [_core.Space.hyperbolic_plane(1e-300)]
    return [*spaces, *matrices, empty, wide, full, *meshes, *kernels, *unset]


OBJECTS = broken_objects()
NUMBERS = [
    -1,
    0,
    1,
    N,
    N + 1,
    16319,
    16320,
    70000,
    2**24,
    2**31 - 1,
    -(2**31),
    2**31,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
]
NUMBERS += [2**64, 10**400, 0.5, 0.0, -1.0, 1e-320, 1e300, np.nan, np.inf, -np.inf, True]


def replacements(value):
    yield from (None, "text", object(), [1, 2], b"bytes")
    if isinstance(value, np.ndarray):
        yield from broken_arrays(value)
    elif isinstance(value, bool | int | float):
        yield from NUMBERS
    else:
        yield from OBJECTS


def test_every_name_of_the_core_has_a_call():
    names = {name for name in dir(_core) if not name.startswith("_") and callable(getattr(_core, name))}
    for kind in (_core.Kernel, _core.Misfit, _core.Space):  # made by static methods
        names.remove(kind.__name__)
        members = inspect.getmembers(kind, callable)
        names |= {f"{kind.__name__}.{name}" for name, _ in members if not name.startswith("_")}
    assert names == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_valid_call_is_accepted(name):
    assert all(call(name, fresh(arguments)) for other, arguments in CALLS if other == name)


@pytest.mark.parametrize("name", NAMES)
def test_one_hostile_argument(name):
    for arguments in (arguments for other, arguments in CALLS if other == name):
        for key, value in arguments.items():
            for replacement in replacements(value):
                call(name, {**fresh(arguments), key: replacement})
        call(name, {**arguments, "unknown": 1})
        call(name, dict(list(arguments.items())[1:]))


@pytest.mark.parametrize("name", NAMES)
def test_several_hostile_arguments(name, rng):
    for arguments in (arguments for other, arguments in CALLS if other == name and arguments):
        choices = {key: list(replacements(value)) for key, value in arguments.items()}
        for _ in range(150):
            changed = fresh(arguments)
            for key in rng.choice(list(arguments), min(len(arguments), 1 + int(rng.integers(4))), replace=False):
                changed[str(key)] = choices[key][int(rng.integers(len(choices[key])))]
            call(name, changed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_points(name, n):
    for arguments in (arguments for other, arguments in CALLS if other == name):
        small = {}
        for key, value in fresh(arguments).items():
            if isinstance(value, np.ndarray):
                small[key] = np.ascontiguousarray(
                    value[tuple(slice(n) if s >= N else slice(None) for s in value.shape)]
                )
            else:
                small[key] = graph(n, min(n, 1)) if isinstance(value, _core.Csr) else value
        call(name, small)


@pytest.mark.parametrize("name", NAMES)
def test_arguments_that_share_memory(name):
    """Each array in the memory of each other, if its bytes suffice, and shifted by one element."""
    for arguments in (arguments for other, arguments in CALLS if other == name):
        arrays = [key for key, value in arguments.items() if isinstance(value, np.ndarray)]
        for key in arrays:
            for other in arrays:
                changed = fresh(arguments)
                a, b = changed[key], changed[other]
                step = max(a.itemsize, b.itemsize)
                memory = np.zeros(max(a.nbytes, b.nbytes) + step, np.uint8)
                for shift in (0, step):
                    changed[other] = memory[: b.nbytes].view(b.dtype).reshape(b.shape)
                    changed[other][...] = b
                    changed[key] = memory[shift : shift + a.nbytes].view(a.dtype).reshape(a.shape)
                    call(name, changed)


def test_outputs_must_not_share_memory_with_indices():
    memory = np.zeros(2 * 3 * N, np.int32)
    memory[: 3 * N] = np.repeat(np.arange(N), 3)
    A = _core.Csr(np.arange(0, 3 * N + 1, 3), memory[: 3 * N], N)
    with pytest.raises(ValueError, match="outputs must not share memory with indices"):
        _core.symmetrize(A, np.ones(3 * N), np.empty(N + 1, np.int64), memory, np.empty(6 * N), 1)


def test_targets_that_are_the_first_points_of_the_map(rng):
    """Equal addresses do not mean that the targets are the sources."""
    Y = rng.standard_normal((N, 3)).astype(np.float32)
    for targets, points in ((Y[:4], Y), (Y, Y[:4])):
        A = _core.Csr(np.arange(len(targets) + 1), np.zeros(len(targets), np.int32), len(points))
        force, copied = np.empty((2, len(targets), 3))
        arguments = _core.Kernel.gaussian(), A, np.ones(len(targets), np.float32)
        _core.edges_to(*arguments, targets, points, force, 1)
        _core.edges_to(*arguments, targets.copy(), points.copy(), copied, 1)
        np.testing.assert_array_equal(force, copied)
        near, charges = (mesh(8, 8, 8), *table().values()), np.ones((len(points), 1))
        sums, of_copies = ([np.zeros((len(targets), 1)), np.zeros((len(targets), 1, 3))] for _ in range(2))
        _core.near(*near, targets, points, charges, *sums, 1)
        _core.near(*near, targets.copy(), points.copy(), charges, *of_copies, 1)
        for found, expected in zip(sums, of_copies, strict=True):
            assert expected.any()
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(8,), (8, 8), (8, 8, 8), (160, 160)])
def test_positions_outside_the_mesh_move_to_its_border(size, dtype, value):
    Y, nodes = np.full((N, len(size)), np.float64(value)).astype(dtype), int(np.prod(size))
    grid = np.empty(nodes + _core.MESH_PADDING, dtype)
    _core.spread(mesh(*size), Y, np.ones((N, 1)), grid, 2)
    assert np.isnan(value) or np.isclose(grid[:nodes].sum(), N)
    potential, half = np.empty((N, 1)), np.empty((N, 1, len(size)))
    _core.gather(mesh(*size), Y, grid, potential, half, 2)
    assert np.isnan(value) or np.isfinite(potential).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(2), 0.0, np.array([8, 8])), "h must be positive and finite"),
        ((np.zeros(2), 1e-320, np.array([8, 8])), "h must be positive and finite"),
        ((np.zeros(2), np.nan, np.array([8, 8])), "h must be positive and finite"),
        ((np.array([0, np.inf]), 1.0, np.array([8, 8])), "origin must be finite"),
        ((np.zeros(2), 1.0, np.array([8, 0])), "at least one node along each axis"),
        ((np.zeros(2), 1.0, np.array([2**40, 2**40])), r"at most 2\^40 in all"),
    ],
)
def test_mesh_checks_its_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        _core.Mesh(*arguments)


@pytest.mark.parametrize("first", [-1, 16320, 2**31 - 1])
def test_table_beyond_the_range_of_floats_raises(first):
    with pytest.raises(ValueError, match="first must not be negative"):
        _core.Kernel.tabulated(np.ones((1, 4), np.float32), first, 1.0)


def test_nan_in_selections_raises():
    for arguments in [arguments for name, arguments in CALLS if name == "nearest_in_groups"]:
        with pytest.raises(ValueError, match="a query has too few distances that are not NaN"):
            _core.nearest_in_groups(**{**fresh(arguments), "queries": np.full_like(arguments["queries"], np.nan)})
    calls = [arguments for name, arguments in CALLS if name == "nearest_of_rows"]
    for arguments in calls:
        with pytest.raises(ValueError, match="an exact distance is NaN"):
            _core.nearest_of_rows(**{**fresh(arguments), "exact": np.full_like(arguments["exact"], np.nan)})
        with pytest.raises(ValueError, match="too few approximate distances are finite"):
            _core.nearest_of_rows(**{**fresh(arguments), "values": np.full_like(arguments["values"], np.nan)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": np.zeros((4, 3))}, "lengths must be positive and finite"),
        ({"lengths": np.full((4, 3), np.nan)}, "lengths must be positive and finite"),
        (
            {
                "lengths": np.where(
                    np.isin(TETRAHEDRON, [0, 1]) & np.isin(np.roll(TETRAHEDRON, -1, axis=1), [0, 1]), 3.0, 1.0
                )
            },
            "shorter than the other two together",
        ),
        ({"twins": np.arange(12, dtype=np.int32).reshape(4, 3)}, "must have that half-edge as its twin"),
        ({"twins": np.arange(12, dtype=np.int32)[::-1].reshape(4, 3).copy()}, "must connect the same two vertices"),
        ({"faces": TETRAHEDRON[:, ::-1].copy()}, "must connect the same two vertices|leaving must list"),
    ],
)
def test_half_edges_that_form_no_surface_raise(changes, message):
    arguments = dict(CALLS)["surface_geodesics"]
    with pytest.raises(ValueError, match=message):
        _core.surface_geodesics(**{**fresh(arguments), **changes})


def test_misaligned_array_raises():
    Y = misaligned(np.ones((N, 2)))
    with pytest.raises(TypeError, match="incompatible"):
        _core.edges_dense(_core.Kernel.gaussian(), 0.0, np.ones((N, N)), Y, np.empty(0), np.empty((N, 2)), 1)

"""Saved methods load with the same bytes, and invalid files raise."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import warnings
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances
from support.methods import LABELS, NEW, X, brief, over

import equipoise as eq
from equipoise.methods import ALL
from equipoise.methods.estimator import threads
from equipoise.saving import archive

NEW = NEW + 0.01
D = pairwise_distances(X)
np.fill_diagonal(D, 0)
GRAPH = eq.neighbors.nearest_neighbors(X, 20)

every_method = over(ALL)
ignore_warnings = pytest.mark.filterwarnings("ignore::UserWarning")


def save_and_load(method, tmp_path):
    eq.save(method, tmp_path / "method.eqz")
    return eq.load(tmp_path / "method.eqz")


def assert_same(one, two):
    """Assert that all public attributes and parameters are identical."""
    assert type(one) is type(two)
    mine, theirs = one.get_params(), two.get_params()
    assert repr({**mine, "callbacks": None}) == repr({**theirs, "callbacks": None})
    names = [name for name in vars(one) if name.endswith("_")]
    assert names == [name for name in vars(two) if name.endswith("_")] and "embedding_" in names
    for name in (*names, *(["affinities_"] if hasattr(one, "affinities_") else [])):
        a, b = getattr(one, name), getattr(two, name)
        if sparse.issparse(a):
            assert a.shape == b.shape and a.dtype == b.dtype
            for part in ("data", "indices", "indptr"):
                assert_array_equal(getattr(a, part), getattr(b, part))
        elif isinstance(a, np.ndarray):
            assert a.dtype == b.dtype and (a.dtype == object or a.tobytes() == b.tobytes()), name
        else:
            assert a == b or (a != a and b != b), name


@every_method
def test_saved_method_loads_with_the_same_bytes(Method, tmp_path):
    method = brief(Method).fit(X)
    loaded = save_and_load(method, tmp_path)
    assert_same(method, loaded)
    before = loaded.transform(NEW)  # transform with the loaded copy first
    assert (
        before.tobytes() == method.transform(NEW).tobytes() == save_and_load(method, tmp_path).transform(NEW).tobytes()
    )


VARIANTS = {
    "mesh": (lambda: brief(eq.TSNE, engine="grid"), X, NEW),
    "mesh with charges": (lambda: brief(eq.SNE, engine="grid"), X, NEW),
    "two kernels on the mesh": (lambda: brief(eq.DKPCA, engine="grid"), X, NEW),
    "sampled pairs": (lambda: brief(eq.GSNE, engine="sampled", n_components=4), X, NEW),
    "sampled edges": (lambda: brief(eq.UMAP, engine="negative_sampling"), X, NEW),
    "intended loss": (lambda: brief(eq.UMAP, loss="intended"), X, NEW),
    "double precision": (lambda: brief(eq.TSNE, engine="reference"), X, NEW),
    "several perplexities": (lambda: brief(eq.TSNE, perplexity=[4, 8]), X, NEW),
    "uniform affinities": (lambda: brief(eq.TSNE, affinity="uniform", engine="grid"), X, NEW),
    "metric tensors": (lambda: brief(eq.TSNE, h=np.diag([1.0, 2, 3, 4, 5]), g=np.array([[2, 1], [1, 2.0]])), X, NEW),
    "kernel and divergence": (
        lambda: brief(eq.SymmetricSNE, kernel=eq.kernels.StudentT(2.0), divergence=eq.divergences.Hellinger()),
        X,
        NEW,
    ),
    "optimiser and initial map": (
        lambda: brief(eq.TSNE, optimizer=eq.GradientDescent(every=7), init=np.asfortranarray(X[:, :2])),
        X,
        NEW,
    ),
    "distances": (lambda: brief(eq.TSNE, metric="precomputed"), D, D[:3] + 0.5),
    "neighbours": (
        lambda: brief(eq.TSNE, metric="precomputed", init="random"),
        (GRAPH.indices.copy(), GRAPH.distances.copy()),
        (GRAPH.indices[:3].copy(), GRAPH.distances[:3] + 0.5),
    ),
    "affinities": (lambda: brief(eq.SNE, affinity="precomputed", init="random"), np.exp(-D), np.exp(-D[:3])),
    "sparse table": (lambda: brief(eq.TSNE), sparse.csr_matrix(np.maximum(X, 0)), sparse.csr_matrix(NEW)),
    "inner products": (lambda: brief(eq.TSNE, metric="inner_product"), X, NEW),
    "metric with parameters from the data": (lambda: brief(eq.MDS, metric="mahalanobis"), X, NEW),
    "dissimilarities": (lambda: brief(eq.MDS, metric="precomputed"), D, D[:3] + 0.5),
    "weights": (lambda: brief(eq.MDS, weights=sparse.csr_matrix(1 / (1 + D))), X, NEW),
    "PCA landmarks": (lambda: brief(eq.PCA, n_landmarks=10), X, NEW),
    "classical MDS landmarks": (lambda: brief(eq.ClassicalMDS, n_landmarks=20, metric="cityblock"), X, NEW),
    "Isomap landmarks": (lambda: brief(eq.Isomap, n_landmarks=20), X, NEW),
    "Gower's formula": (lambda: brief(eq.ClassicalMDS, metric="cityblock"), X, NEW),
    "flow": (lambda: brief(eq.PCA, solver="flow"), X, NEW),
    "local bandwidths": (lambda: brief(eq.DKLLE, bandwidth="local"), X, NEW),
    "global bandwidth": (lambda: brief(eq.DKLLE, bandwidth="global", metric="cosine"), X, NEW),
    "Gaussian edges": (lambda: brief(eq.LaplacianEigenmaps, affinity="gaussian"), X, NEW),
}


@ignore_warnings
@pytest.mark.parametrize("name", VARIANTS)
def test_saved_variant_loads_with_the_same_bytes(name, tmp_path):
    make, data, new = VARIANTS[name]
    method = make().fit(data)
    loaded = save_and_load(method, tmp_path)
    assert_same(method, loaded)
    assert loaded.transform(new).tobytes() == method.transform(new).tobytes()


@pytest.mark.parametrize("name", ["PCA landmarks", "classical MDS landmarks", "Isomap landmarks", "Gower's formula"])
def test_rows_transformed_one_by_one_after_loading_have_the_same_bytes(name, tmp_path):
    make, data, new = VARIANTS[name]
    method = make().fit(data)
    loaded = save_and_load(method, tmp_path)
    one_by_one = np.concatenate([loaded.transform(new[i : i + 1]) for i in range(len(new))])
    assert one_by_one.tobytes() == method.transform(new).tobytes()


def test_feature_names_and_numpy_scalars_survive_saving(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcde"))
    method = brief(eq.UMAP, n_neighbors=np.int64(6), spread=np.float32(1.5)).fit(table, LABELS)
    loaded = save_and_load(method, tmp_path)
    assert list(loaded.feature_names_in_) == list("abcde") and loaded.feature_names_in_.dtype == object
    assert type(loaded.n_neighbors) is np.int64 and type(loaded.spread) is np.float32
    new = pandas.DataFrame(NEW, columns=list("abcde"))
    assert loaded.transform(new).tobytes() == method.transform(new).tobytes()


def test_transform_is_unaffected_by_engine_calls_in_between(tmp_path):
    method = brief(eq.TSNE, engine="grid").fit(X)
    loaded = save_and_load(method, tmp_path)
    for scale in (1, 3, 40):
        method._problem.loss(scale * method.embedding_)
    assert method.transform(NEW).tobytes() == loaded.transform(NEW).tobytes()


def test_equal_methods_give_identical_files(tmp_path):
    for name in "ab":
        eq.save(brief(eq.TSNE).fit(X), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_callbacks_are_not_saved(tmp_path):
    method = brief(eq.TSNE, callbacks=[lambda iteration, loss, Y: None]).fit(X)
    assert save_and_load(method, tmp_path).callbacks == ()


# Values that cannot be saved


@dataclass(frozen=True)
class Loop(eq.kernels.Kernel):
    def value(self, d2):
        return (1 + d2) ** -1.5

    def slope(self, d2):
        return -1.5 * (1 + d2) ** -2.5


def manhattan(a, b):
    return np.abs(a - b).sum()


@pytest.mark.parametrize(
    "method, message",
    [
        (brief(eq.SymmetricSNE, kernel=Loop()), r"kernel cannot be saved: Loop .*; use a kernel of equipoise.kernels"),
        (brief(eq.TSNE, metric=manhattan), r"metric cannot be saved: function manhattan is not .*; name a metric"),
        (brief(eq.TSNE, random_state=np.random.RandomState(0)), r"random_state cannot .* RandomState .*set_params"),
    ],
    ids=["kernel", "metric", "random_state"],
)
def test_saving_user_code_or_random_state_raises(method, message, tmp_path):
    method.fit(X)
    with pytest.raises(ValueError, match=message):
        eq.save(method, tmp_path / "method.eqz")
    assert list(tmp_path.iterdir()) == []


def test_saving_unfitted_or_foreign_methods_raises(tmp_path):
    class Mine(eq.TSNE):
        pass

    with pytest.raises(NotFittedError):
        eq.save(eq.TSNE(), tmp_path / "method.eqz")
    with pytest.raises(ValueError, match=r"save\(\) supports the methods SNE, .*; got Mine"):
        eq.save(Mine(), tmp_path / "method.eqz")


# Invalid files


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """Return the entries of a valid file."""
    path = tmp_path_factory.mktemp("store") / "method.eqz"
    eq.save(brief(eq.TSNE, n_iter=2, engine="grid").fit(X), path)
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def assert_load_raises(tmp_path, entries, message, compression=zipfile.ZIP_STORED):
    path = tmp_path / "method.eqz"
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as file:
        warnings.simplefilter("ignore")  # duplicate entry names
        for name, content in entries.items() if isinstance(entries, dict) else entries:
            file.writestr(name, content)
    with pytest.raises(ValueError, match=message) as error:
        eq.load(path)
    assert "\n" not in str(error.value) and "method.eqz" in str(error.value)


def with_content(entries, **about):
    content = {**json.loads(entries["content.json"]), **about}
    return {**entries, "content.json": json.dumps(content).encode()}


def with_state(entries, **state):
    content = json.loads(entries["content.json"])
    content["content"]["dict"]["state"]["dict"].update(state)
    return {**entries, "content.json": json.dumps(content).encode()}


def npy_bytes(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def test_newer_format_raises(tmp_path, entries):
    message = r"written by equipoise 9\.0\.0 in format 2, .* which reads format 1; upgrade equipoise"
    assert_load_raises(tmp_path, with_content(entries, format=2, equipoise="9.0.0"), message)


@pytest.mark.parametrize(
    "about, message",
    [
        ({"kind": "checkpoint"}, "does not contain a fitted method"),
        ({"format": None}, "does not specify the version of its format"),
        ({"method": "os.system"}, "a method that this version does not know, 'os.system'"),
        ({"method": ["TSNE"]}, "damaged"),
        ({"content": {"dict": {}}}, "damaged"),
        ({"content": {"exec": "1"}}, "a value of unknown kind, 'exec'"),
        ({"content": {"object": "builtins.eval", "state": None}}, "the file contains 'builtins.eval'"),
        ({"content": {"object": "kernels.StudentT", "state": {"dict": {"dof": -1}}}}, "must be a finite number > 0"),
        (
            {"content": {"object": "kernels.StudentT", "state": {"dict": {"dof": 1, "x": 1}}}},
            "StudentT has no attribute 'x'",
        ),
        ({"content": {"array": 10**6}}, "1000000.npy"),
    ],
    ids=str,
)
def test_invalid_content_raises(tmp_path, entries, about, message):
    assert_load_raises(tmp_path, with_content(entries, **about), message)


def test_unknown_parameters_and_attributes_raise(tmp_path, entries):
    content = json.loads(entries["content.json"])
    content["content"]["dict"]["parameters"]["dict"]["warp"] = 1
    assert_load_raises(tmp_path, {**entries, "content.json": json.dumps(content)}, "TSNE has no parameter 'warp'")
    assert_load_raises(tmp_path, with_state(entries, transform=1), "has no attribute 'transform'")
    assert_load_raises(tmp_path, with_state(entries, __class__=1), "has no attribute '__class__'")
    assert_load_raises(tmp_path, with_state(entries, _axet=1), "TSNE has no attribute '_axet'")
    assert_load_raises(tmp_path, with_state(entries, embedding_=1), "does not contain a map with 2 columns")


def test_loaded_thread_count_is_limited_to_this_machine(tmp_path, entries):
    content = entries["content.json"].replace(b'"n_threads": 1', b'"n_threads": 100000')
    assert content != entries["content.json"]
    with zipfile.ZipFile(tmp_path / "method.eqz", "w") as file:
        for name, entry in {**entries, "content.json": content}.items():
            file.writestr(name, entry)
    loaded = eq.load(tmp_path / "method.eqz")
    assert loaded._placement.engine.n_threads == loaded._fitted.n_threads == threads(None)


def test_invalid_entries_raise(tmp_path, entries):
    content = {"content.json": entries["content.json"]}
    assert_load_raises(tmp_path, {**entries, "../../evil.npy": b""}, "unexpected entry, '../../evil.npy'")
    assert_load_raises(tmp_path, {**entries, "/etc/passwd": b""}, "unexpected entry")
    assert_load_raises(tmp_path, [*entries.items(), *content.items()], "two entries of the file have the same name")
    assert_load_raises(tmp_path, {"0.npy": entries["0.npy"]}, "no content.json")
    assert_load_raises(tmp_path, entries, "compressed or encrypted", zipfile.ZIP_DEFLATED)
    assert_load_raises(tmp_path, {**entries, "content.json": b"[" * 100_000}, "damaged")
    assert_load_raises(tmp_path, {**entries, "content.json": b"\xff"}, "damaged")


def test_invalid_arrays_raise(tmp_path, entries):
    bad = {
        "unsupported array of dtype object": npy_bytes(np.array([print], dtype=object), allow_pickle=True),
        "unsupported array of dtype": npy_bytes(np.zeros(2, [("a", "i4")])),
        "bytes, but its header declares 8000000128": npy_bytes(np.zeros(3)).replace(
            b"(3,), }         ", b"(1000000000,), }"
        ),
        "damaged": b"no array",
        "Header info length .* is large": npy_bytes(np.zeros(3))[:8] + b"\xff\xff" + b" " * 65535,
    }
    for message, content in bad.items():
        assert_load_raises(tmp_path, {**entries, "0.npy": content}, message)


def test_amplifying_content_raises(tmp_path, entries):
    """Small files must not ask for much memory or time."""
    nested = b"\x93NUMPY\x01\x00" + struct.pack("<H", 9001) + b"-" * 9000 + b"1"
    assert_load_raises(tmp_path, {**entries, "0.npy": nested}, "the header of an array is not valid")
    empty = npy_bytes(np.ndarray(5, np.dtype("<U0"))).replace(b"(5,), }         ", b"(5000000000,), }")
    assert_load_raises(tmp_path, {**entries, "0.npy": empty}, "unsupported array of dtype <U0")
    objects = [{"object": "kernels.Gaussian", "state": {"dict": {}}}] * 1001
    assert_load_raises(tmp_path, with_state(entries, x_=objects), "the file contains more than 1000 objects")
    state = json.loads(entries["content.json"])["content"]["dict"]["state"]["dict"]
    arrays = state["_affinities"]["csr"][2:]
    matrices = [{"csr": [60, columns, *arrays]} for columns in range(61, 200)]
    assert_load_raises(tmp_path, with_state(entries, x_=matrices), "the file contains more sparse matrices than arrays")


def test_declared_size_of_the_zip_directory_is_not_allocated(tmp_path):
    path = tmp_path / "method.eqz"
    eq.save(brief(eq.TSNE, n_iter=2).fit(X), path)
    whole = bytearray(path.read_bytes())
    end = whole.rindex(b"PK\x05\x06")
    whole[end + 12 : end + 16] = struct.pack("<I", 2**31)  # the size of the directory
    path.write_bytes(whole)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"method\.eqz is damaged"):
            eq.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_sparse_matrix_with_indices_out_of_range_raises(tmp_path, entries):
    content = json.loads(entries["content.json"])["content"]["dict"]["state"]["dict"]["_affinities"]["csr"]
    for position, value in ((3, 10**6), (4, -1)):
        name = f"{content[position]}.npy"
        array = np.load(io.BytesIO(entries[name]))
        array[5] = value
        assert_load_raises(tmp_path, {**entries, name: npy_bytes(array)}, "indptr of a sparse matrix are inconsistent")


def test_damaged_files_raise(tmp_path, entries):
    path = tmp_path / "method.eqz"
    eq.save(brief(eq.TSNE, n_iter=2).fit(X), path)
    whole = path.read_bytes()
    rng = np.random.RandomState(0)
    pieces = [b"", b"PK", whole[:1000], whole[1000:], b"y1,y2\n0,1\n"]
    flipped = bytearray(whole)
    for place in rng.randint(0, 20_000, 20):
        flipped[place] ^= 0xFF
    for damaged in (*pieces, bytes(flipped)):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged or is not an equipoise file"):
            eq.load(path)
    with pytest.raises(FileNotFoundError):
        eq.load(tmp_path / "nothing.eqz")


def test_archive_round_trip_of_every_value_type(tmp_path):
    value = {
        "plain": [None, True, 3, 2.5, "ä", [], {}],
        "special": (float("inf"), -np.inf, ()),
        "numbers": [np.float32(1.5), np.int64(3), np.bool_(True)],
        "empty": np.empty((0, 3)),
        "order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "words": np.array(["a", "bcd"]),
        "matrix": sparse.csr_matrix(np.eye(3)),
    }
    archive.write(tmp_path / "file", {}, value)
    back = archive.read(tmp_path / "file", lambda path, about: None)
    assert repr(back) == repr(value) and back["order"].flags.f_contiguous
    assert_array_equal(back["matrix"].toarray(), np.eye(3))
    with pytest.raises(archive.Unstorable, match="set is not a plain value"):
        archive.write(tmp_path / "file", {}, {1, 2})

"""The device code from X to P, run on PyTorch's CPU device, against the CPU code."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from support.cases import unequal_digits
from support.on_torch import BRIEF, brief

import equipoise as eq
from equipoise.affinities import fuzzy
from equipoise.affinities import perplexity as affinities
from equipoise.arrays import csr
from equipoise.arrays.csr import permuted as permuted_on_host
from equipoise.arrays.namespace import morton_order
from equipoise.neighbors.search import nearest_neighbors

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.arrays import device_csr as csr_module  # noqa: E402
from equipoise.arrays.device_csr import Rows, row_tiles  # noqa: E402
from equipoise.arrays.to_device import as_tensor  # noqa: E402
from equipoise.neighbors import gpu as search_module  # noqa: E402
from equipoise.neighbors.gpu import search  # noqa: E402
from equipoise.neighbors.gpu_blocks import BLOCK, Blocks, cells, longest_axis, nearest_center, reach  # noqa: E402
from equipoise.neighbors.gpu_scan import nearest  # noqa: E402
from equipoise.neighbors.recall import estimate_recall  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits():
    return unequal_digits(300)


@pytest.fixture(scope="module")
def cloud():
    """Return clustered points, scaled down from the sizes at which blocks are searched."""
    X, _ = make_blobs(6000, 8, centers=40, cluster_std=1.0, random_state=0)
    return torch.from_numpy(X.astype(np.float32))


def sparse_matrix(n=60, per_row=5, seed=0):
    """Return a sparse matrix with an empty diagonal and one empty row."""
    rng = np.random.default_rng(seed)
    A = sparse.random(n, n, per_row / n, format="lil", dtype=np.float32, random_state=rng)
    A.setdiag(0)
    A[7] = 0
    A = sparse.csr_matrix(A)
    A.eliminate_zeros()
    return A


# CSR matrices on a device


def test_device_csr_round_trip():
    A = sparse_matrix()
    rows = Rows.of(A, CPU)
    assert (rows.shape, rows.nnz, rows.device) == (A.shape, A.nnz, CPU)
    assert [part.dtype for part in (rows.data, rows.indices, rows.indptr)] == [torch.float32, torch.int32, torch.int64]
    back = rows.host()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(back, part), getattr(A, part))
    assert csr.is_sparse(rows) and csr.is_sparse(A) and not csr.is_sparse(A.toarray())
    assert csr.on_host(A) is A and (csr.on_host(rows) != A).nnz == 0
    for again in (pickle.loads(pickle.dumps(rows)), Rows.of(A, CPU)):
        assert (again.host() != A).nnz == 0 and again.nnz == rows.nnz and again.shape == rows.shape


def test_device_csr_accepts_int64_and_read_only_arrays():
    A = sparse_matrix().astype(np.float64)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    for part in (A.data, A.indices, A.indptr):
        part.flags.writeable = False
    rows = Rows.of(A, CPU)
    assert (rows.data.dtype, rows.indices.dtype) == (torch.float32, torch.int32)
    np.testing.assert_array_equal(rows.host().toarray(), A.toarray())
    a = np.arange(3.0)
    assert as_tensor(a).data_ptr() == a.ctypes.data


def test_device_csr_operations_match_scipy():
    A = sparse_matrix()
    rows, order = Rows.of(A, CPU), np.random.default_rng(1).permutation(A.shape[0])
    S = rows.symmetrized().host()
    np.testing.assert_allclose(S.toarray(), (A + A.T).toarray(), rtol=1e-6)
    assert S.nnz == (A + A.T).nnz and S.has_sorted_indices
    P = rows.permuted(torch.from_numpy(order)).host()
    np.testing.assert_array_equal(P.toarray(), A[order][:, order].toarray())
    on_host = permuted_on_host(A, order)
    np.testing.assert_array_equal(P.indices, on_host.indices)  # entries keep their order within a row
    np.testing.assert_array_equal(P.indptr, on_host.indptr)
    sums = csr.row_sums(rows)
    assert sums.dtype == torch.float64 and sums[7] == 0
    np.testing.assert_allclose(sums.numpy(), csr.row_sums(A), rtol=1e-6)  # SciPy sums float32 in float32


def test_device_csr_gives_the_same_bytes_in_tiles_of_any_size(monkeypatch):
    rows, order = Rows.of(sparse_matrix(), CPU), torch.from_numpy(np.random.default_rng(1).permutation(60))
    whole = [rows.symmetrized(), rows.permuted(order)]
    for most in (1, 37, 200):
        assert [part.stop for part in row_tiles(rows.counts(), most)][-1] == 60
        monkeypatch.setattr(csr_module, "FIXED_SORTED", most)
        monkeypatch.setattr(csr_module, "FIXED_SEARCH_TILE", most)
        for found, expected in zip([rows.symmetrized(), rows.permuted(order)], whole, strict=True):
            for part in ("data", "indices", "indptr"):
                assert torch.equal(getattr(found, part), getattr(expected, part))


def test_row_tiles_have_at_most_the_given_entries_or_one_row():
    counts = torch.tensor([3, 0, 4, 9, 1, 1])
    assert row_tiles(counts, 7) == [slice(0, 3), slice(3, 4), slice(4, 6)]
    assert row_tiles(counts, 100) == [slice(0, 6)]


def test_device_csr_with_a_diagonal_or_without_entries():
    D = sparse.csr_matrix(np.diag([1.0, 2.0, 0.0]).astype(np.float32))
    np.testing.assert_array_equal(Rows.of(D, CPU).symmetrized().host().toarray(), 2 * D.toarray())
    empty = Rows.of(sparse.csr_matrix((4, 4), dtype=np.float32), CPU)
    assert empty.symmetrized().nnz == 0 and empty.permuted(torch.arange(4)).nnz == 0
    np.testing.assert_array_equal(empty.row_sums().numpy(), np.zeros(4))


def test_device_csr_from_neighbor_lists():
    indices = torch.tensor([[1, 2], [0, 2], [1, 0]], dtype=torch.int32)
    A = Rows.of_neighbors(torch.arange(1.0, 7.0).reshape(3, 2), indices).host().toarray()
    np.testing.assert_array_equal(A, [[0, 1, 2], [3, 0, 4], [6, 5, 0]])


# Blocks and block search


def test_every_point_is_in_exactly_one_block(cloud):
    for X in (cloud, cloud[: 5 * BLOCK]):
        blocks = Blocks(X)
        sizes = blocks.starts.diff()
        assert sorted(blocks.order.tolist()) == list(range(len(X)))
        assert int(sizes.sum()) == len(X) and int(sizes.min()) >= BLOCK // 2 and int(sizes.max()) <= BLOCK
        np.testing.assert_array_equal(blocks.X[:, : X.shape[1]].numpy(), X[blocks.order].numpy())
        positions = torch.arange(len(X))
        np.testing.assert_array_equal(blocks.block_of(positions), torch.arange(len(blocks)).repeat_interleave(sizes))
        means = torch.stack([part.mean(dim=0) for part in blocks.X.split(sizes.tolist())])
        np.testing.assert_allclose(blocks.centers.numpy(), means.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("D", "columns"), [(1, 16), (16, 16), (17, 32), (33, 64), (65, 128), (129, 192)])
def test_columns_are_padded(cloud, D, columns):
    X = cloud[:500, :1].repeat(1, D)
    blocks = Blocks(X)
    assert blocks.X.shape == (500, columns) and torch.equal(blocks.X[:, :D], X[blocks.order])
    assert not blocks.X[:, D:].any()


def test_blocks_are_listed_by_the_distance_of_their_centers(cloud):
    blocks = Blocks(cloud)
    lists = blocks.lists(len(blocks), slice(None))
    assert sorted(lists[3].tolist()) == list(range(len(blocks)))
    np.testing.assert_array_equal(lists[:, 0].numpy(), np.arange(len(blocks)))
    D = cdist(blocks.centers.numpy(), blocks.centers.numpy())
    assert (np.diff(np.take_along_axis(D, lists.numpy().astype(int), axis=1), axis=1) > -1e-3).all()
    some = torch.tensor([5, 0])
    np.testing.assert_array_equal(blocks.lists(4, some).numpy(), lists[some, :4].numpy())


def test_blocks_contain_nearby_points(cloud):
    blocks = Blocks(cloud)
    block = blocks.block_of(torch.arange(len(cloud)))
    own = (blocks.X - blocks.centers[block]).square().sum(dim=1).mean()
    assert own < 0.5 * (cloud - cloud.mean(dim=0)).square().sum(dim=1).mean()
    centers = cloud[:50]
    true = cdist(cloud.numpy(), centers.numpy()).argmin(axis=1)
    assert (nearest_center(cloud, centers).numpy() == true).mean() > 0.999


def test_points_of_small_cells_go_to_other_cells():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((2000, 4)), 50 + 20 * rng.standard_normal((20, 4))])  # 20 outliers
    count, cell = cells(torch.from_numpy(X[rng.permutation(len(X))].astype(np.float32)))
    assert count > 1 and int(torch.bincount(cell, minlength=count).min()) >= BLOCK // 2


def test_longest_axis_orders_the_points_of_a_cell():
    rng = np.random.default_rng(0)
    axes = np.array([[3.0, 0.1, 0.1], [0.1, 0.1, 3.0]])
    X = torch.from_numpy((axes[:, None] * rng.standard_normal((2, 300, 3)) + 7).reshape(600, 3).astype(np.float32))
    along = longest_axis(X, torch.tensor([0, 300, 600])).numpy()
    for part, column in ((slice(0, 300), 0), (slice(300, 600), 2)):
        assert abs(np.corrcoef(along[part], X[part, column])[0, 1]) > 0.99


@pytest.mark.parametrize("min_recall", [0.9, 0.99])
def test_reach_gives_the_requested_recall(cloud, min_recall):
    blocks, k = Blocks(cloud), 15
    sample = torch.randperm(len(cloud), generator=torch.Generator().manual_seed(3))[:1000]
    true = nearest(blocks.X[sample], blocks.X, k + 1)
    width = reach(blocks, sample[:500], true.indices[:500], min_recall)
    assert 1 < width < len(blocks)
    held_out = estimate_recall(blocks.nearest(k, width)[1][sample[500:]], true.d2[500:, -1])
    assert min_recall - 0.02 <= held_out  # sampling error of 500 rows
    fewer = blocks.nearest(k, width - 1)[1]
    assert estimate_recall(fewer[sample[:500]], true.d2[:500, -1]) <= min_recall


def test_reach_ignores_the_point_itself(cloud):
    blocks, sample = Blocks(cloud), torch.arange(200)
    true = nearest(blocks.X[sample], blocks.X, 2).indices
    others = true[true != sample[:, None]].reshape(200, 1)
    assert reach(blocks, sample, true, 0.9) == reach(blocks, sample, others, 0.9)


def test_independent_distances_do_not_depend_on_which_pass_found_them():
    rng = np.random.RandomState(0)
    centers = 100 * rng.standard_normal((20, 16))  # tight clusters far apart: some searches are repeated in float64
    X = torch.as_tensor((centers[np.arange(600) % 20] + 0.01 * rng.standard_normal((600, 16))).astype(np.float32))
    Q = X[:40] + 0.001
    found, exact = (nearest(A, B, 10, independent=True) for A, B in ((Q, X), (Q.double(), X.double())))
    np.testing.assert_array_equal(found.indices.numpy(), exact.indices.numpy())
    np.testing.assert_array_equal(found.d2.numpy(), exact.d2.float().numpy())


def test_searching_all_blocks_is_exact(cloud):
    blocks = Blocks(cloud[:700])
    indices, d2 = blocks.nearest(10, len(blocks))
    true = nearest(blocks.X, blocks.X, 10, torch.arange(700))
    np.testing.assert_array_equal(indices.numpy(), true.indices.numpy())
    np.testing.assert_allclose(d2.numpy(), true.d2.numpy(), rtol=1e-4)


def hits(found, true):
    """Return the fraction of the true neighbours that were found."""
    pairs = zip(found.indices.tolist(), true.indices.tolist(), strict=True)
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in pairs])


@pytest.fixture
def searched(monkeypatch):
    """Return a list to which every block search adds the number of blocks searched; blocks pay from 1,000 points on."""
    widths, nearest_in_blocks = [], Blocks.nearest

    def counted(self, k, width, precision):
        widths.append(width)
        return nearest_in_blocks(self, k, width)

    monkeypatch.setattr(search_module, "MANY", 1000)
    monkeypatch.setattr(Blocks, "nearest", counted)
    return widths


def test_large_tables_are_searched_by_blocks_with_measured_recall(cloud, searched):
    found = search(cloud, 15, 0.95)
    assert 1 <= len(searched) <= 2 and searched[-1] < len(Blocks(cloud))
    assert 0.95 <= found.recall < 1
    assert hits(found, nearest(cloud, cloud, 15, torch.arange(len(cloud)))) == pytest.approx(found.recall, abs=0.02)
    assert (found.d2.diff(dim=1) >= 0).all()
    fit = brief(perplexity=5, n_iter=2).fit(cloud.numpy())
    assert 0.99 <= fit.knn_recall_ <= 1


def test_more_blocks_are_searched_if_the_recall_is_missed(cloud, searched, monkeypatch):
    count = len(Blocks(cloud))
    monkeypatch.setattr(search_module, "reach", lambda blocks, sample, true, target: 1)
    found = search(cloud, 15, 0.9999)
    assert searched == [1, 1, count]  # both attempts miss the recall
    assert found.recall == 1.0 and hits(found, nearest(cloud, cloud, 15, torch.arange(len(cloud)))) > 0.9999


def test_all_pairs_are_compared_if_rounding_affects_every_search(cloud, searched, monkeypatch):
    monkeypatch.setattr(search_module, "search_near", lambda *arguments: None)
    monkeypatch.setattr(search_module, "SURE", 2.0)
    found, X = search(cloud[:1500], 10, 0.99), cloud[:1500] - cloud[:1500].mean(dim=0)
    assert len(searched) == 2 and found.recall == 1.0
    assert found.indices.equal(nearest(X, X, 10, torch.arange(1500)).indices)


def test_block_search_is_reproducible(cloud, monkeypatch):
    monkeypatch.setattr(search_module, "MANY", 1000)
    one, two = (search(cloud[:2000].clone(), 10, 0.95) for _ in range(2))
    assert one.indices.equal(two.indices) and one.d2.equal(two.d2) and one.recall == two.recall
    assert cells(cloud)[1].equal(cells(cloud.clone())[1])


def test_neighbors_in_tight_distant_clusters_are_accurate():
    rng = np.random.default_rng(0)
    X = 100 * rng.standard_normal((8, 6))[np.repeat(np.arange(8), 60)] + 1e-3 * rng.standard_normal((480, 6))
    V = torch.from_numpy(X / np.abs(X).max()).float()
    V -= V.mean(dim=0)
    D = cdist(V.double().numpy(), V.double().numpy())
    np.fill_diagonal(D, np.inf)
    true = np.sort(D, axis=1)[:, :10] ** 2
    np.testing.assert_allclose(search(V, 10, 0.99).d2.numpy(), true, rtol=1e-3)


# Affinities


def squared_distances(X, k):
    """Return squared distances to the same neighbours as a SciPy matrix and on the device."""
    D2 = nearest_neighbors(X, k, n_threads=1).into_squared(len(X))
    order = np.argsort(D2.data.reshape(-1, k), axis=1, kind="stable")
    data, indices = (np.take_along_axis(part.reshape(-1, k), order, axis=1) for part in (D2.data, D2.indices))
    D2 = csr.make_csr(data.ravel(), indices.ravel(), D2.indptr, D2.shape)
    return D2, Rows.of(D2, CPU)


@pytest.mark.parametrize("perplexities", [[10.0], [5.0, 12.0]])
def test_device_affinities_match_the_cpu(digits, perplexities):
    on_cpu, on_device = squared_distances(digits, 36)
    P = affinities.conditional(on_cpu, np.array(perplexities), np.float64, 1)
    Q = affinities.conditional(on_device, np.array(perplexities), np.float32, 1)
    assert isinstance(Q, Rows)
    np.testing.assert_allclose(Q.host().toarray(), P.toarray(), rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(Q.row_sums().numpy(), 1, rtol=1e-5)
    J, K = affinities.joint(P), affinities.joint(Q)
    np.testing.assert_allclose(K.host().toarray(), J.toarray(), rtol=1e-3, atol=1e-9)
    assert float(K.row_sums().sum()) == pytest.approx(1, rel=1e-5)
    uniform = [affinities.uniform(d, np.array(perplexities), np.float32) for d in (on_cpu, on_device)]
    np.testing.assert_allclose(uniform[1].host().toarray(), uniform[0].toarray(), rtol=1e-6)


def test_duplicates_warn_and_share_evenly_on_a_device():
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[5:17] = X[5]  # twelve duplicates
    on_cpu, on_device = squared_distances(X, 15)
    messages, rows = [], []
    for one in (on_cpu, on_device):
        with pytest.warns(UserWarning, match="more neighbours at the smallest distance") as caught:
            rows.append(affinities.conditional(one, np.array([5.0]), np.float32, 1))
        messages += [str(warning.message) for warning in caught]
    assert messages[0] == messages[1] and messages[0].startswith("13 rows (the first is row 5)")  # 12 duplicates + 1
    np.testing.assert_allclose(rows[1].host().toarray(), rows[0].toarray(), rtol=1e-3, atol=1e-6)


def test_device_memberships_and_union_match_the_cpu(digits):
    X = digits[:120].copy()
    X[3] = X[9] = X[4]  # duplicates
    X[20:40] = X[20]  # more duplicates than neighbours
    on_cpu, on_device = squared_distances(X, 14)
    W = fuzzy.memberships(on_cpu, 15, np.float32, 1)
    V = fuzzy.memberships(on_device, 15, np.float32, 1)
    np.testing.assert_allclose(V.host().toarray(), W.toarray(), rtol=2e-3, atol=1e-5)
    mu, nu = fuzzy.fuzzy_union(W), fuzzy.fuzzy_union(V)
    assert isinstance(nu, Rows)
    np.testing.assert_allclose(nu.host().toarray(), mu.toarray(), rtol=2e-3, atol=1e-5)
    labels = np.arange(120) % 3 - (np.arange(120) % 7 == 0)
    pair = [fuzzy.intersected(m, labels, 0.5) for m in (mu, nu)]
    np.testing.assert_allclose(pair[1].toarray(), pair[0].toarray(), rtol=5e-3, atol=1e-5)


def test_fuzzy_union_of_a_small_matrix():
    W = sparse.csr_matrix(np.array([[0, 1, 0.5], [0.25, 0, 0], [0.5, 0, 0]], np.float32))
    expected = [[0, 1, 0.75], [1, 0, 0], [0.75, 0, 0]]
    np.testing.assert_allclose(fuzzy.fuzzy_union(Rows.of(W, CPU)).host().toarray(), expected, rtol=1e-6)


def test_supervised_umap_on_a_device_matches_the_cpu(digits):
    labels = np.arange(300) % 2  # labels unrelated to the data
    maps = {name: eq.UMAP(engine=name, **{**BRIEF, "n_iter": 100}).fit(digits, labels) for name in ("torch", "grid")}
    assert maps["torch"].loss_ == pytest.approx(maps["grid"].loss_, rel=0.05)
    between = [cdist(m.embedding_[labels == 0], m.embedding_[labels == 1]).min(axis=1).mean() for m in maps.values()]
    assert between[0] == pytest.approx(between[1], rel=0.5)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_morton_order_of_a_tensor_matches_numpy(d):
    U = np.random.default_rng(d).standard_normal((500, d)).astype(np.float32)
    np.testing.assert_array_equal(morton_order(torch.from_numpy(U)).numpy(), morton_order(U))
    flat = np.zeros((10, d), np.float32)
    np.testing.assert_array_equal(morton_order(torch.from_numpy(flat)).numpy(), morton_order(flat))

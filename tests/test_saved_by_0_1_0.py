"""Files written by version 0.1.0: models load and transform as before, and checkpoints resume to the same map."""

import json
import shutil
import zipfile

import numpy as np
import pytest
from saved_by_0_1_0.make import FOLDER, MODELS, NEEDS_TORCH, RUNS, X, run_command

import equipoise as eq
from equipoise import data

EXPECTED = dict(np.load(FOLDER / "expected.npz"))
# Results on meshes that have become finer since 0.1.0: their forces may differ by up to tol = 0.01.
ON_FINER_MESH = {
    "tsne_sparse_reduced transform",
    "tsne_neighbors transform",
    "power transform",
    "resumed tsne_grid map",
}
ignore_warnings = pytest.mark.filterwarnings("ignore::UserWarning")  # irrelevant to these tests


def require_torch(name):
    if name in NEEDS_TORCH:
        pytest.importorskip("torch")


def assert_close(found, expected, part=1e-4):
    """Assert equality up to a fraction of the extent: rounding depends on the processor's instructions."""
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=part, atol=part * np.ptp(expected))


def test_every_saved_file_is_tested():
    models = {path.stem for path in FOLDER.glob("*.eqz")}
    assert models == {*MODELS, "command"}
    assert {path.stem for path in FOLDER.glob("*.eqc")} == set(RUNS)


@ignore_warnings
@pytest.mark.parametrize("name", MODELS)
def test_old_model_loads_and_transforms_as_before(name):
    require_torch(name)
    make, _, new = MODELS[name]
    method = eq.load(FOLDER / f"{name}.eqz")
    assert type(method) is type(make()) and repr(method) == repr(make())
    assert method.embedding_.dtype == EXPECTED[f"{name} map"].dtype
    assert method.embedding_.tobytes() == EXPECTED[f"{name} map"].tobytes()
    assert method.loss_ == EXPECTED["losses"][list(MODELS).index(name)]
    assert hasattr(method, "affinities_") or isinstance(method, eq.MDS)
    if new is not None:
        key = f"{name} transform"
        assert_close(method.transform(new), EXPECTED[key], 5e-3 if key in ON_FINER_MESH else 1e-4)


@ignore_warnings
@pytest.mark.parametrize("name", MODELS)
def test_old_model_is_unchanged_after_saving_again(name, tmp_path):
    require_torch(name)
    method, new = eq.load(FOLDER / f"{name}.eqz"), MODELS[name][2]
    eq.save(method, tmp_path / "again.eqz")
    again = eq.load(tmp_path / "again.eqz")
    assert again.embedding_.tobytes() == method.embedding_.tobytes()
    if new is not None:
        assert again.transform(new).tobytes() == method.transform(new).tobytes()


@ignore_warnings
@pytest.mark.filterwarnings("ignore:UMAP.engine=.sampled:FutureWarning")  # the files were written with this name
@pytest.mark.parametrize("name", RUNS)
def test_old_checkpoint_resumes_to_the_same_map(name, tmp_path):
    require_torch(name)
    make, rows, _ = RUNS[name]
    path = tmp_path / "run.eqc"
    shutil.copy(FOLDER / f"{name}.eqc", path)
    require_same_machine(name, path)
    seen = []
    checkpoint = eq.Checkpoint(path, every=1000, resume=True)
    method = make().set_params(callbacks=[checkpoint, lambda iteration, loss, Y: seen.append(iteration)]).fit(rows)
    whole = []
    make().set_params(callbacks=[lambda iteration, loss, Y: whole.append(iteration)]).fit(rows)
    assert 0 < len(seen) < len(whole)  # the run did not restart from the beginning
    key = f"resumed {name} map"
    assert_close(method.embedding_, EXPECTED[key], 5e-3 if key in ON_FINER_MESH else 1e-3)
    if name != "umap_sampled":  # whose loss is evaluated for callbacks only
        assert_close(method.loss_curve_, EXPECTED[f"resumed {name} curve"], 1e-3)


def require_same_machine(name, path):
    """Skip where resuming is not guaranteed: another PyTorch, or another rounding of UMAP's fitted kernel."""
    if name == "parametric":
        import torch

        with zipfile.ZipFile(path) as archive:
            version = json.loads(archive.read("content.json"))["run"]["version of PyTorch"]
        if version != str(torch.__version__):
            pytest.skip(f"the checkpoint is of PyTorch {version}")
    kernel = eq.kernels.Membership.fitted(0.1, 1.0)
    if name.startswith("umap") and not np.array_equal(EXPECTED["membership"], [kernel.a, kernel.b]):
        np.testing.assert_allclose([kernel.a, kernel.b], EXPECTED["membership"], rtol=1e-6)
        pytest.skip("this processor rounds the fit of UMAP's kernel differently")


def test_old_cli_model_prepares_new_rows_as_before(tmp_path):
    assert_close(eq.load(FOLDER / "command.eqz").embedding_, EXPECTED["command map"])
    run_command("transform", FOLDER / "command.eqz", FOLDER / "new.csv", "--out", tmp_path / "places.npy")
    assert_close(np.load(tmp_path / "places.npy"), EXPECTED["command transform"])


def test_old_npz_table_loads():
    np.testing.assert_array_equal(data.read(FOLDER / "table.npz").X, X)

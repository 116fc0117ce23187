"""The verbs that only print information: data, info, completion."""

import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from support.command_line import one_line_error

import equipoise
from equipoise import cli, data
from equipoise.cli import main


def test_data_lists_the_bundled_data_sets(capsys):
    assert main(["data"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(data.DATASETS)
    for line in lines:
        n, D = data.load(line.split()[0]).X.shape
        assert f"{n:,} " in line
        assert f" {D} " in line or "8 × 8" in line


@pytest.mark.parametrize("name", ["digits", "trefoil", "noise"])
def test_data_describes_one_data_set(name, capsys):
    assert main(["data", name]) == 0
    text = capsys.readouterr().out
    n, D = data.load(name).X.shape
    assert text.startswith(f"{name}: {data.DATASETS[name]}\n")
    assert f"rows       {n:,}\ncolumns    {D:,}\n" in text and f"equipoise embed {name}\n" in text
    assert ("classes " in text) == (name != "noise")
    assert max(map(len, text.splitlines())) <= 80


def test_unknown_data_set_gets_a_suggestion(capsys):
    assert main(["data", "trefol"]) == 2
    assert "unknown data set 'trefol'; did you mean trefoil?" in one_line_error(capsys)


def info_facts(capsys):
    assert main(["info"]) == 0
    facts = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    return {name: fact.strip() for name, fact in facts.items()}


def test_info_prints_version_engines_and_cores(capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    facts = info_facts(capsys)
    assert facts["equipoise"] == equipoise.__version__
    assert facts["engines"] == "reference, exact, grid, sampled" + ", torch" * bool(find_spec("torch"))
    assert facts["instruction set"] in ("avx2", "base")
    assert facts["cores"].endswith("; 1 thread by default")
    assert facts["extra anndata"].count("zarr") == 1
    assert "bokeh" in facts["extra pages"] and "extra test" not in facts and "GPU" in facts


def test_info_without_pytorch(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    facts = info_facts(capsys)
    assert facts["engines"] == "reference, exact, grid, sampled"
    assert facts["GPU"].endswith('is not installed: pip install "equipoise[gpu]"')


def fake_torch(monkeypatch, version, cuda):
    """Replace PyTorch by a fake with this version and this `cuda` module."""
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: version if name == "torch" else real(name))
    module = SimpleNamespace(__spec__=SimpleNamespace(), cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", module)


def test_info_names_the_gpus(capsys, monkeypatch):
    large = SimpleNamespace(name="NVIDIA H200", total_memory=150_000_000_000)
    small = SimpleNamespace(name="Small", total_memory=8_000_000_000)
    seen = SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 2, get_device_properties=lambda number: (large, small)[number]
    )
    fake_torch(monkeypatch, "2.9.0", seen)
    assert info_facts(capsys)["GPU"] == "NVIDIA H200, 150 GB, Small, 8 GB, with PyTorch 2.9.0"
    fake_torch(monkeypatch, "2.9.0", SimpleNamespace(is_available=lambda: False))
    assert info_facts(capsys)["GPU"] == "none found by PyTorch 2.9.0"
    fake_torch(monkeypatch, "2.9.0+cpu", None)  # not queried for a CPU build
    assert info_facts(capsys)["GPU"] == "none: PyTorch 2.9.0+cpu is a CPU build"


def test_warm_up_without_a_gpu_says_so(capsys, monkeypatch):
    fake_torch(monkeypatch, "2.9.0", SimpleNamespace(is_available=lambda: False))
    assert main(["info", "--warm-up"]) == 0
    assert capsys.readouterr().out == "no GPU, so there are no kernels to compile: none found by PyTorch 2.9.0\n"
    fake_torch(monkeypatch, "2.9.0+cpu", None)
    assert main(["info", "--warm-up"]) == 0
    assert "no kernels to compile: none: PyTorch 2.9.0+cpu is a CPU build" in capsys.readouterr().out


def test_warm_up_prints_what_it_compiled(capsys, monkeypatch):
    fake_torch(monkeypatch, "2.9.0", SimpleNamespace(is_available=lambda: True))
    variants = [("_spread", 0.5, False), ("_step", 0.25, True), ("_spread", 1.0, False)]
    futures = [
        SimpleNamespace(result=lambda v=v: SimpleNamespace(name=v[0], seconds=v[1], cached=v[2])) for v in variants
    ]
    monkeypatch.setitem(sys.modules, "equipoise.methods.gpu_kernels", SimpleNamespace(compile_all=lambda: futures))
    assert main(["info", "--warm-up"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["spread", "2", "variants", "0.50,", "1.00", "s"],
        ["step", "1", "variant", "0.25", "s"],
    ]
    assert lines[2].startswith("3 variants in ") and lines[2].endswith(" s: 2 compiled, 1 read from disk")


def completed(words, folder):
    """Return the completions that bash offers for the last word."""
    call = 'eval "$SCRIPT"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_equipoise'
    script = call + '; printf "%s\\n" "${COMPREPLY[@]}"'
    return subprocess.run(
        ["bash", "-c", script, "bash", "equipoise", *words],
        env={"SCRIPT": completed.script},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completion_offers_verbs_files_and_options(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    completed.script = capsys.readouterr().out
    (tmp_path / "table.csv").touch()
    assert completed(["em"], tmp_path) == ["embed"]
    assert completed(["embed", "dig"], tmp_path) == ["digits"]
    assert completed(["embed", "ta"], tmp_path) == ["table.csv"]
    assert completed(["embed", "digits", "--perp"], tmp_path) == ["--perplexity"]
    assert completed(["embed", "digits", "--method", "u"], tmp_path) == ["umap"]
    assert completed(["embed", "digits", "--save", "ta"], tmp_path) == ["table.csv"]
    assert completed(["sweep", "digits", "--method", "umap", "--min"], tmp_path) == ["--min-dist"]
    assert completed(["embed", "digits", "--format", "p"], tmp_path) == ["parquet"]
    assert completed(["data", "tre"], tmp_path) == ["trefoil"]
    assert completed(["completion", "z"], tmp_path) == ["zsh"]
    assert completed(["plot", "table.csv", "--da"], tmp_path) == ["--dark", "--data"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_contain_every_method_and_parse(shell, capsys, tmp_path):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in (*cli.METHODS, *data.DATASETS, "perplexity", "n-landmarks", "checkpoint", "compare"):
        assert word in script, word
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} to check the script")
    (tmp_path / "script").write_text(script)
    assert subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True, text=True).stderr == ""

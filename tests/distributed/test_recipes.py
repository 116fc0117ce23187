"""The recipes for clusters in docs/howto/clusters.md, run on local clusters of Dask, Ray and Spark, and by torchrun.

Where Ray or Spark is not installed, its test says so and is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support.source_tree import ROOT, needs

from equipoise.distributed import SingleProcess
from equipoise.distributed.launch import free_port

VARIABLES = {
    "GLOO_SOCKET_IFNAME": "lo",
    "SPARK_LOCAL_IP": "127.0.0.1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "200",  # the tests share the machine with others
}
GUIDE = ROOT / "docs" / "howto" / "clusters.md"
pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [pytest.mark.ranks, pytest.mark.slow, needs("docs")]


def block(heading: str, language: str = "py") -> str:
    """Return the first block of code below a heading of the guide."""
    section = GUIDE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None, heading
    return found[1]


def shared_code() -> str:
    """Return the function that the recipes run on all ranks, without the lines that run it."""
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    return code[1].split("with eq.distributed.current_group()")[0]


def replace(code: str, **changes: str) -> str:
    """Return code with some texts replaced; every text must occur once."""
    for old, new in changes.items():
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    return code


def expected():
    """Return what the function of the guide returns on one process."""
    namespace: dict[str, object] = {}
    exec(shared_code(), namespace)
    return namespace["mean_of_rows"](SingleProcess(), 10_000)


def run(tmp_path: Path, code: str, *command: str) -> str:
    """Run a program in `tmp_path` and return its output."""
    (tmp_path / "mean.py").write_text(code, encoding="utf-8")
    command = command or (sys.executable,)
    done = subprocess.run(
        [*command, "mean.py"], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **VARIABLES}
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_torchrun(tmp_path):
    code = shared_code() + "with eq.distributed.current_group() as group:\n    print(mean_of_rows(group, 10_000))\n"
    words = block("torchrun", "sh").split()
    assert words == ["torchrun", "--nproc-per-node", "4", "mean.py"]
    shown = run(tmp_path, code, sys.executable, "-m", "torch.distributed.run", "--standalone", *words[1:2], "2")
    assert "".join(shown.split("\n")) == str(expected()) * 2  # the lines of two processes may run together


def test_variables_of_slurm(tmp_path):
    """Slurm is not needed: srun starts this command with its variables once for each task."""
    (tmp_path / "mean.py").write_text(
        shared_code() + "with eq.distributed.current_group() as group:\n    print(mean_of_rows(group, 10_000))\n",
        encoding="utf-8",
    )
    command = re.search(r"bash -c \\\n *'(.*)'", block("Slurm", "sh"))
    assert command is not None
    words = ["bash", "-c", command[1].replace("exec python ", f"exec {sys.executable} ")]
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port("127.0.0.1")), "SLURM_NTASKS": "2"}
    tasks = [
        subprocess.Popen(
            words, cwd=tmp_path, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **VARIABLES, **address, "SLURM_PROCID": str(task), "SLURM_LOCALID": str(task)},
        )
        for task in range(2)
    ]  # fmt: skip
    assert [task.communicate()[0] for task in tasks] == [f"{expected()}\n"] * 2


@pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is not installed")
def test_dask(tmp_path):
    start = 'LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")'
    recipe = replace(block("Dask"), **{'"scheduler:8786"': start}).replace(
        "import Client", "import Client, LocalCluster"
    )
    body = "".join(f"    {line}\n" for line in recipe.splitlines())
    code = f'{shared_code()}\nif __name__ == "__main__":\n{body}    print(*results, sep="\\n")\n'
    assert run(tmp_path, code).splitlines() == [str(expected())] * 2


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'ray[train]'")
def test_ray(tmp_path):
    recipe = replace(block("Ray"), **{'num_workers=4, resources_per_worker={"CPU": 4}': "num_workers=2"})
    recipe = replace(recipe, **{'"mean.npy"': repr(str(tmp_path / "mean.npy"))})
    start = "ray.init(num_cpus=2, include_dashboard=False, object_store_memory=10**8)"
    run(tmp_path, f"{shared_code()}\nimport ray\n\n{start}\n{recipe}")
    assert np.load(tmp_path / "mean.npy").tolist() == expected()


@pytest.mark.skipif(find_spec("pyspark") is None or not shutil.which("java"), reason="Spark or Java is not installed")
def test_spark(tmp_path):
    session = 'from pyspark.sql import SparkSession\n\nSparkSession.builder.master("local[2]").getOrCreate()\n'
    recipe = replace(block("Spark"), **{"num_processes=4": "num_processes=2"})
    shown = run(tmp_path, f"{shared_code()}\n{session}\n{recipe}\nprint(mean)\n")
    assert shown.splitlines()[-1] == str(expected())

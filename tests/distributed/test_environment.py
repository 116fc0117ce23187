"""The group that environment variables describe."""

from __future__ import annotations

import pytest

from equipoise.distributed import SingleProcess, current_group
from equipoise.distributed.environment import read_environment

COMPLETE = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "node0", "MASTER_PORT": "29500", "LOCAL_RANK": "0"}
NAMES = (*COMPLETE, "LOCAL_WORLD_SIZE")


def test_complete_variables_are_read():
    assert read_environment(COMPLETE) == (1, 3)
    assert read_environment({}) == (0, 1)
    assert read_environment({"MASTER_PORT": "tcp://10.0.0.1:80"}) == (0, 1)  # Kubernetes sets it for a service "master"
    assert read_environment({"RANK": "0", "WORLD_SIZE": "1"}) == (0, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"RANK": None}, "RANK is not set, but WORLD_SIZE=3: a launcher such as torchrun sets both"),
        ({"WORLD_SIZE": None}, "WORLD_SIZE is not set, but RANK=1"),
        ({"MASTER_ADDR": None}, "MASTER_ADDR is not set, but WORLD_SIZE=3: set it to the host of rank 0"),
        ({"MASTER_PORT": None}, "MASTER_PORT is not set, but RANK=1, WORLD_SIZE=3"),
        ({"MASTER_PORT": "99999"}, "MASTER_PORT=99999 is no port; use 1024 to 65535"),
        ({"RANK": "3"}, "RANK=3 must be less than WORLD_SIZE=3"),
        ({"RANK": "-1"}, "RANK='-1' must be an integer of at least 0"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE='two' must be an integer of at least 1"),
        ({"LOCAL_RANK": "2"}, "LOCAL_RANK=2 must not be greater than RANK=1"),
    ],
)
def test_incomplete_and_contradictory_variables_are_refused(changes, message):
    variables = {name: value for name, value in {**COMPLETE, **changes}.items() if value is not None}
    with pytest.raises(ValueError) as error:
        read_environment(variables)
    assert message in str(error.value)


def test_without_variables_the_group_is_a_single_process(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    group = current_group(timeout=7)
    assert isinstance(group, SingleProcess) and (group.rank, group.size, group.timeout) == (0, 1, 7.0)
    assert current_group(group) is group and group.hosts == (group.host,)

"""The environment variables by which launchers such as torchrun describe ranks."""

from __future__ import annotations

from collections.abc import Mapping


def read_environment(variables: Mapping[str, str]) -> tuple[int, int]:
    """Return rank and size as set by RANK and WORLD_SIZE, or (0, 1); raise if variables are missing or contradict."""
    if not ("RANK" in variables or "WORLD_SIZE" in variables):
        return 0, 1
    size = _integer(variables, "WORLD_SIZE", 1)
    rank = _integer(variables, "RANK", 0)
    if rank >= size:
        raise ValueError(f"RANK={rank} must be less than WORLD_SIZE={size}")
    if size > 1:
        if not variables.get("MASTER_ADDR"):
            raise ValueError(f"MASTER_ADDR is not set, but WORLD_SIZE={size}: set it to the host of rank 0")
        if _integer(variables, "MASTER_PORT", 1) > 65535:
            raise ValueError(f"MASTER_PORT={variables['MASTER_PORT']} is no port; use 1024 to 65535")
    if "LOCAL_RANK" in variables:
        local = _integer(variables, "LOCAL_RANK", 0)
        if local > rank:
            raise ValueError(f"LOCAL_RANK={local} must not be greater than RANK={rank}")
    return rank, size


def _integer(variables: Mapping[str, str], name: str, least: int) -> int:
    text = variables.get(name)
    if text is None:
        there = ", ".join(f"{n}={variables[n]}" for n in ("RANK", "WORLD_SIZE") if n in variables)
        raise ValueError(f"{name} is not set, but {there}: a launcher such as torchrun sets both")
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name}={text!r} must be an integer of at least {least}")
    return int(text)

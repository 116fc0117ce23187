"""The corpus: cases that failed before, a JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parent / "corpus.jsonl"


def read_corpus(path: Path = CORPUS) -> Iterator[dict[str, Any]]:
    """Yield the cases of a corpus, or of a file of bad cases that the command wrote."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            entry = json.loads(line)
            yield entry.get("case", entry)

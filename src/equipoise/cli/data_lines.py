"""Print what was read before it is embedded: rows, columns, what was left out, gaps, preparation, and hints."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .._names import list_names
from .._plural import plural
from .console import Console
from .options import STDIN
from .read_table import Table


def print_data(console: Console, args: argparse.Namespace, table: Table, method: Any, seed: object) -> None:
    """Print the size of the data and the method, then which columns are embedded and what was done with the others."""
    n, D = table.dataset.X.shape
    size = f"{plural(n, 'row')}, {plural(D, 'column')}"
    console.print(f"{table.dataset.name}: {size}; {type(method).__name__}, seed {seed}")
    columns = table.columns
    if columns and args.columns is None and is_file(args):
        console.print(f"columns             {list_names(columns)}")
        left_out = [name for name in table.dataset.extra if name not in columns and name not in table.mentioned]
        if left_out:
            console.print(f"not embedded        {list_names(left_out)}")
    hints = [f"hint                {hint}" for hint in table.hints] if is_file(args) else []
    for note in (*table.notes, *table.details.notes, *hints):
        console.print(note)
    if not table.preparation.is_identity:
        console.print(f"preparation         {table.preparation}")


def is_file(args: argparse.Namespace) -> bool:
    """Return whether the data are read from a file or from standard input, not bundled."""
    return args.data == STDIN or Path(args.data).is_file()

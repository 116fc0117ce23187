"""Write a map and its plots."""

from __future__ import annotations

import sys
from typing import Any

from .. import data
from .._types import Array
from ..data import Dataset
from ..data.write import WRITERS, class_column, map_columns
from .annotated_output import AnnotatedOutput
from .map_files import is_coordinate
from .outputs import PAGE, Outputs, write_bytes
from .page_details import add_details
from .pictures import Drawing, render


def write_outputs(
    outputs: Outputs,
    Y: Array,
    dataset: Dataset,
    title: str,
    over: Array | None = None,
    geometry: Any = None,
    into: AnnotatedOutput | None = None,
) -> None:
    """Write the map Y (n, d) and its plots; if the map `over` (m, d) is given, plots show it in grey under Y.

    `geometry` is the space of the map; flat if None. `into`, if given, is the file to which the map is added.
    """
    if outputs.to_stdout:
        WRITERS[f".{outputs.format}"](sys.stdout.buffer, Y, dataset)
    elif outputs.map is not None:
        outputs.map.parent.mkdir(parents=True, exist_ok=True)
        if into is not None:
            into.write(outputs.map, Y)
        else:
            data.write_map(outputs.map, Y, dataset)
    columns = {name: values for name, values in map_columns(Y, dataset).items() if not is_coordinate(name)}
    drawing = Drawing(Y, columns, class_column(columns, dataset), title, over=over, geometry=geometry)
    for path in outputs.pictures:
        format = path.suffix[1:].lower()
        write_bytes(path, render(format, add_details(drawing, outputs.details) if format == PAGE else drawing))

"""What is written into a page that needs no network: the scripts of Bokeh, its plots, and arrays."""

from __future__ import annotations

import base64
import json
import zlib
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from .._types import Array

JS_ARRAYS = {
    "uint8": "Uint8Array",
    "int8": "Int8Array",
    "int16": "Int16Array",
    "int32": "Int32Array",
    "float32": "Float32Array",
    "float64": "Float64Array",
}


def bokeh_scripts(what: str, *components: str) -> str:
    """Return the scripts of some components of Bokeh; `what` needs them."""
    try:
        from bokeh.resources import Resources
    except ImportError as error:
        raise ImportError(f'{what} needs Bokeh: pip install "equipoise[pages]"') from error
    resources: Any = Resources(mode="inline", components=list(components))
    scripts: str = resources.render()
    return scripts


def script(name: str, package: str = __package__) -> str:
    """Return the script `name`.js of a package, by default this one."""
    return files(package).joinpath(f"{name}.js").read_text(encoding="utf-8")


def filled(name: str, package: str, **parts: str) -> str:
    """Return the page `name`.html of a package with its parts, and with elements.js and its script `name`.js."""
    page = Template(files(package).joinpath(f"{name}.html").read_text(encoding="utf-8"))
    return page.substitute(parts, script=script("elements") + script(name, package))


def as_json(value: Any) -> str:
    """Return JSON that no name of a class can end early."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def plot_json(plot: Any, place: str) -> str:
    """Return a plot of Bokeh as JSON for the element `place`."""
    from bokeh.document import Document
    from bokeh.embed import json_item

    Document().add_root(plot)  # its own, not the one of a server that this may run in
    return json.dumps(json_item(plot, place)).replace("<", "\\u003c")


def packed(values: Array) -> dict[str, str]:
    """Return an array as a type of JavaScript and its bytes, compressed and in base 64."""
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    data = base64.b64encode(zlib.compress(values.tobytes(), 6)).decode()
    return {"type": JS_ARRAYS[values.dtype.name], "data": data}

"""Make the parts of self-contained HTML pages: Bokeh's scripts, plots and arrays, all inline."""

from __future__ import annotations

import base64
import json
import zlib
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from .._types import Array
from .policy import policy_element

JS_ARRAYS = {
    "uint8": "Uint8Array",
    "int8": "Int8Array",
    "int16": "Int16Array",
    "int32": "Int32Array",
    "float32": "Float32Array",
    "float64": "Float64Array",
}


def bokeh_scripts(feature: str, *components: str) -> str:
    """Return the scripts of some `components` of Bokeh, to be written into a page.

    If Bokeh is not installed, raise ImportError; the message says that `feature` needs Bokeh.
    """
    try:
        from bokeh.resources import Resources
    except ImportError as error:
        raise ImportError(f'{feature} needs Bokeh: pip install "equipoise[pages]"') from error
    resources: Any = Resources(mode="inline", components=list(components))
    scripts: str = resources.render()
    return scripts


def read_script(name: str, package: str = __package__) -> str:
    """Return the text of `name`.js in a package, by default this one."""
    return read_text(f"{name}.js", package)


def read_text(name: str, package: str) -> str:
    """Return the text of a file of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def render_page(name: str, package: str, scripts: dict[str, str], parts: dict[str, str]) -> str:
    """Fill in the template `name`.html of a package, and return a page in which only known scripts can run.

    The content security policy of the page is computed before `parts` are filled in, so that scripts in `parts` cannot
    run. The policy replaces the placeholder `policy` of the template, and the text of elements.js and
    `name`.js replaces the placeholder `script`.

    Parameters
    ----------
    name, package : str
        Name of the template, without .html, and of the package that contains it and `name`.js.
    scripts : dict of str to str
        Other scripts, by the names of their placeholders in the template.
    parts : dict of str to str
        Texts for the remaining placeholders, by name.
    """
    template = Template(files(package).joinpath(f"{name}.html").read_text(encoding="utf-8"))
    scripts = scripts | {"script": read_script("elements") + read_script(name, package)}
    without_parts = template.substitute(dict.fromkeys(parts, ""), policy="", **scripts)
    return template.substitute(parts, policy=policy_element(without_parts), **scripts)


def as_json(value: Any) -> str:
    """Return JSON that is safe inside a <script> element."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def plot_json(plot: Any, element_id: str) -> str:
    """Return a Bokeh plot as JSON, to be embedded in the element `element_id`."""
    from bokeh.document import Document
    from bokeh.embed import json_item

    Document().add_root(plot)  # a new document, not that of a running Bokeh server
    return json.dumps(json_item(plot, element_id)).replace("<", "\\u003c")


def encode_array(values: Array) -> dict[str, str]:
    """Return an array as the name of its JavaScript type and its bytes, compressed and encoded in base64."""
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    data = base64.b64encode(zlib.compress(values.tobytes(), 6)).decode()
    return {"type": JS_ARRAYS[values.dtype.name], "data": data}

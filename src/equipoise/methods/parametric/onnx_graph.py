"""Encoder networks as ONNX graphs, which other languages run without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..._atomic import atomic_write
from ..._optional import import_optional
from ..._types import Array
from ..._version import __version__
from ...geometry import Flat, Geometry

OPSET, IR_VERSION = 17, 8  # of ONNX 1.12 (2022); later programs read them


class Graph:
    """Nodes and constants of a graph, appended in the order of computation; `last` is the name of the last result."""

    def __init__(self, onnx: Any):
        self.onnx, self.last = onnx, "x"
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any) -> str:
        """Add a float32 array and return its name."""
        name = f"c{len(self.constants)}"
        array: Array = np.asarray(values, dtype=np.float32)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def apply(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node that applies an operator to the inputs, by default the last result; return its name."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs or (self.last,)), [name], **attributes))
        self.last = name
        return name

    def add_layer(self, layer: dict[str, Any]) -> None:
        """Add a layer of `layers_as_data`."""
        kind = layer["kind"]
        if kind == "Standardized":
            self.apply("Sub", self.last, self.constant(layer["mean"]))
            self.apply("Div", self.last, self.constant(layer["scale"]))
        elif kind == "Linear":
            constants = [self.constant(layer[name]) for name in ("weight", "bias") if layer[name] is not None]
            self.apply("Gemm", self.last, *constants, transB=1)
        elif kind == "GELU":
            self._add_gelu(layer["approximate"])
        elif kind == "SiLU":
            x = self.last
            self.apply("Mul", x, self.apply("Sigmoid"))
        elif kind == "LeakyReLU":
            self.apply("LeakyRelu", alpha=float(layer["negative_slope"]))
        elif kind == "ELU":
            self.apply("Elu", alpha=float(layer["alpha"]))
        else:
            self.apply({"ReLU": "Relu"}.get(kind, kind))

    def _add_gelu(self, approximate: str) -> None:
        """Add x/2 · (1 + erf(x/√2)), or its approximation by tanh; ONNX has one operator for it since opset 20."""
        x = self.last
        if approximate == "tanh":
            cube = self.apply("Mul", self.apply("Mul", x, x), x)
            inner = self.apply("Add", x, self.apply("Mul", cube, self.constant(0.044715)))
            self.apply("Mul", inner, self.constant(np.sqrt(2 / np.pi)))
            step = self.apply("Tanh")
        else:
            self.apply("Mul", x, self.constant(np.sqrt(0.5)))
            step = self.apply("Erf")
        half = self.apply("Mul", x, self.constant(0.5))
        self.apply("Mul", half, self.apply("Add", step, self.constant(1.0)))

    def add_geometry(self, geometry: Geometry) -> None:
        """Add the projection of the output to the map: on a sphere, R y/‖y‖."""
        if isinstance(geometry, Flat):
            return
        y = self.last
        radius = self.constant(geometry.radius)  # type: ignore[attr-defined]
        unit = self.apply("Div", y, self.apply("ReduceL2", y, axes=[1], keepdims=1))
        self.apply("Mul", unit, radius)


def write_onnx(path: str | Path, layers: list[dict[str, Any]], geometry: Geometry, shape: tuple[int, int]) -> None:
    """Write the network with these layers, from `shape[0]` columns to `shape[1]`, to an ONNX file, atomically."""
    onnx = import_optional("onnx", "onnx", "to_onnx")
    graph, helper = Graph(onnx), onnx.helper
    for layer in layers:
        graph.add_layer(layer)
    graph.add_geometry(geometry)
    graph.apply("Identity")
    graph.nodes[-1].output[0] = "y"

    def rows_of(name: str, columns: int) -> Any:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", columns])

    inputs, outputs = [rows_of("x", shape[0])], [rows_of("y", shape[1])]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "equipoise", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="equipoise",
        producer_version=__version__,
    )
    onnx.checker.check_model(model)
    with atomic_write(path) as file:
        file.write(model.SerializeToString())

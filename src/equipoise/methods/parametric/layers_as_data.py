"""Encoder networks as plain values and arrays, from which files and ONNX graphs are written.

A network is a list of layers, each a dict with the name of its kind, its numbers and its arrays. It must be a sequence
of the layers named in `LAYERS`, as the default encoder is; any other network is code, which cannot be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._optional import import_optional

if TYPE_CHECKING:
    from torch import nn

# The class of torch.nn for each kind of layer without arrays, and the attributes that its constructor takes.
ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "GELU": ("approximate",),
    "ReLU": (),
    "LeakyReLU": ("negative_slope",),
    "ELU": ("alpha",),
    "SiLU": (),
    "Tanh": (),
    "Sigmoid": (),
}
LAYERS = ("Linear", *ACTIVATIONS, "Identity", "Dropout", "Sequential")


def as_data(encoder: nn.Module) -> list[dict[str, Any]]:
    """Return the layers of an encoder; raise ValueError if one of them is not in `LAYERS`."""
    return [layer for module in _modules(encoder) for layer in _layer(module)]


def _modules(encoder: nn.Module) -> Iterator[nn.Module]:
    from torch import nn

    if type(encoder) is nn.Sequential:
        for module in encoder:
            yield from _modules(module)
    else:
        yield encoder


def _layer(module: nn.Module) -> Iterator[dict[str, Any]]:
    from torch import nn

    from .encoder import Standardized

    def array(tensor: Any) -> Any:
        return None if tensor is None else tensor.detach().cpu().numpy().astype(np.float32)

    name = type(module).__name__
    if type(module) is Standardized:
        yield {"kind": "Standardized", "mean": array(module.mean), "scale": float(module.scale)}
    elif type(module) is nn.Linear:
        yield {"kind": "Linear", "weight": array(module.weight), "bias": array(module.bias)}
    elif name in ACTIVATIONS and type(module) is getattr(nn, name):
        yield {"kind": name, **{key: getattr(module, key) for key in ACTIVATIONS[name]}}
    elif type(module) not in (nn.Identity, nn.Dropout):  # which do nothing after training
        raise ValueError(
            f"the encoder contains the module {name}, which is code and cannot be written; use layers of torch.nn among"
            f" {', '.join(LAYERS)}, or save encoder_.state_dict() with torch.save"
        )


def from_data(layers: list[dict[str, Any]]) -> nn.Module:
    """Return the network with these layers; raise ValueError if they do not describe one."""
    import_optional("torch", "gpu", "Parametric")
    import torch
    from torch import nn

    from .encoder import Standardized

    modules: list[nn.Module] = []
    for layer in layers:
        kind = layer.get("kind")
        if kind == "Standardized":
            modules.append(Standardized(layer["mean"], layer["scale"]))
        elif kind == "Linear":
            weight, bias = np.asarray(layer["weight"], dtype=np.float32), layer["bias"]
            linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
            with torch.no_grad():
                linear.weight.copy_(torch.as_tensor(weight))
                if bias is not None:
                    linear.bias.copy_(torch.as_tensor(np.asarray(bias, dtype=np.float32)))
            modules.append(linear)
        elif kind in ACTIVATIONS:
            modules.append(getattr(nn, kind)(**{key: layer[key] for key in ACTIVATIONS[kind]}))
        else:
            raise ValueError(f"unknown layer {str(kind)[:80]!r}")
    return nn.Sequential(*modules).eval()

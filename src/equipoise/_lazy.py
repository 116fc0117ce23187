"""Packages whose names are imported when they are first used.

The stub `__init__.pyi` of such a package contains its imports, for readers and type checkers; `__init__.py` passes them
to `import_lazily`. A program that uses one method then waits only for the modules of that method.

The package `lazy-loader` reads stubs too, but with it a submodule hides the public function of the same name.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from importlib.util import find_spec, resolve_name
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package that imports a name when it is first used: a name of its stub, or the name of a submodule."""

    _origins: dict[str, str]  # the module of each name in the stub; the package itself for a submodule

    def __getattr__(self, name: str) -> Any:
        origin = self._origins.get(name)
        if origin is not None and origin != self.__name__:
            value = getattr(import_module(origin), name)
        elif origin is not None or (not name.startswith("_") and find_spec(f"{self.__name__}.{name}") is not None):
            value = import_module(f"{self.__name__}.{name}")
        else:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep a submodule, which Python sets when it is imported, from hiding the public name that it shares."""
        hides = isinstance(value, ModuleType) and self._origins.get(name, self.__name__) != self.__name__
        if not hides:
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Pickle the package by its name, as Ray, Spark and Dask pickle the modules that a function uses."""
        return import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        submodules = {module.name for module in iter_modules(self.__path__) if not module.name.startswith("_")}
        return sorted({*super().__dir__(), *self._origins, *submodules})


def import_lazily(package: str) -> list[str]:
    """Import the names in the stub of `package` when they are first used, and return them."""
    module = sys.modules[package]
    file = module.__file__
    assert file is not None
    path = Path(file).with_suffix(".pyi")
    if not path.exists():
        raise ImportError(
            f"the stub {path.name} of {package} is missing from {path.parent}; package the .pyi files too"
        )
    stub = ast.parse(path.read_text(encoding="utf-8"))
    origins = {
        alias.asname or alias.name: resolve_name("." * node.level + (node.module or ""), package)
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }
    vars(module)["_origins"] = origins
    module.__class__ = LazyPackage
    return sorted(origins)

"""Replace functions of modules and classes in place, also of modules that are imported later, and put them back."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from types import ModuleType
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Patch:
    """A function to replace: `module` defines it, `path` is "Class.method" or "function" in it.

    `replacement(original)` returns the new function.
    """

    module: str
    path: str
    replacement: Callable[[Function], Function]

    def apply(self) -> Callable[[], None] | None:
        """Replace the function and return a function that puts it back; None if this version does not have it."""
        owner: Any = sys.modules[self.module]
        *parents, name = self.path.split(".")
        for parent in parents:
            owner = getattr(owner, parent, None)
        original = getattr(owner, name, None)
        if original is None:
            return None
        own = vars(owner).get(name)  # None if the method is inherited
        setattr(owner, name, wraps(original)(self.replacement(original)))

        def restore() -> None:
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)

        return restore


class ImportHook(importlib.abc.MetaPathFinder):
    """Call `imported(module name)` after one of the modules `names` was imported."""

    def __init__(self, names: set[str], imported: Callable[[str], None]):
        self.names, self.imported = names, imported
        self._finding: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.names or fullname in self._finding:
            return None
        self._finding.add(fullname)  # other hooks may search sys.meta_path from its start
        try:
            others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
            spec = next((spec for spec in others if spec is not None), None)
        finally:
            self._finding.discard(fullname)
        if spec is not None and spec.loader is not None:
            self._report_execution(spec.loader)
        return spec

    def _report_execution(self, loader: Any) -> None:
        """Make the loader of a module call `imported` once, after it has executed the module."""
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)  # the loader is the module's __loader__; other hooks may have done so
            execute(module)
            self.imported(module.__name__)

        loader.exec_module = exec_module


class Patches:
    """A set of patches, applied now where the module is imported, otherwise when it is."""

    def __init__(self, patches: Sequence[Patch]):
        self._patches = list(patches)
        self._restore: list[Callable[[], None]] = []
        self._hook: ImportHook | None = None

    @property
    def applied(self) -> bool:
        return self._hook is not None

    def apply(self) -> None:
        if self.applied:
            return
        modules = {patch.module for patch in self._patches}
        self._hook = ImportHook(modules - sys.modules.keys(), self._apply_to)
        sys.meta_path.insert(0, self._hook)
        for module in sorted(modules & sys.modules.keys()):
            self._apply_to(module)

    def _apply_to(self, module: str) -> None:
        for patch in self._patches:
            if patch.module == module and (restore := patch.apply()) is not None:
                self._restore.append(restore)

    def undo(self) -> None:
        """Put every original function back, in reverse order, and remove the import hook."""
        if self._hook is not None:
            sys.meta_path.remove(self._hook)
            self._hook = None
        while self._restore:
            self._restore.pop()()

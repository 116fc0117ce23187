"""The layers of the package and the rules that `test_architecture.py` enforces.

`LAYERS` lists the entries of the package root in order: a module imports only from its own entry and from
entries above it. CONTRIBUTING.md shows the same list as a table.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LAYERS = {
    "_types": "names for arrays and callbacks",
    "_version": "the version, in one place",
    "_lazy": "packages whose names are imported when they are first used",
    "_warn": "warnings that point at the user's line",
    "_suggest": '"did you mean"',
    "_names": "lists of names in messages",
    "_plural": "counted nouns in messages",
    "_cells": "cells of text: missing values and numbers",
    "_optional": "imports of optional packages",
    "_file_locks": "locks on files, released when their process ends",
    "_atomic": "files that are written completely or not at all",
    "_tags": "names of classes in saved files",
    "_core": "the C++ core: edges, field, perplexity, geodesics, stress",
    "progress": "progress bars and stages",
    "arrays": "NumPy, PyTorch and CuPy through one namespace; sparse matrices, tiles, memory checks, Morton order",
    "kernels": "output kernels k(d2)",
    "divergences": "divergences between P and Q",
    "pair_losses": "losses F(k_x, k_y) of pairs of points",
    "geometry": "where the map lives: flat space, the sphere, the torus, the hyperbolic plane, user-defined spaces",
    "linalg": "eigenvectors, PCA, Laplacians, Gram matrices, Nyström; one sign rule",
    "mixed": "distances between rows of numbers, dates, categories and gaps",
    "neighbors": "k nearest neighbours with measured recall, on the CPU and the GPU",
    "data": "what comes in from outside: readers, writers, checks, data sets, preparation",
    "procrustes": "maps superimposed on one another",
    "spaces": "metric spaces, distortion, geodesics on graphs and surfaces",
    "inputs": "X, checked once, answering every question a method asks",
    "affinities": "neighbours to P: perplexity, fuzzy union, locally linear weights",
    "engines": "the primitives edges and field: reference, exact, mesh, sampled, torch",
    "objectives": "losses as edges + field + scalars, a file per family",
    "saving": "state on disk without pickle: archives, checkpoints",
    "optimize": "from forces to moves: rules, schedules, the descent loop, placement",
    "initialize": "where the points start",
    "problems": "loss + start + optimiser, unsolved",
    "memory": "how much memory a fit needs",
    "methods": "the estimators, a class each",
    "distributed": "several processes and machines: ranks, their collectives, and how they are started",
    "views": "arrays in, figures and pages out",
    "store": "fitted methods as files",
    "canonical": "canonical forms of surfaces",
    "force_laws": "attraction and repulsion as curves",
    "evaluate": "measures, report, stability, sweep, and their figures",
    "anndata": "the methods and the measures on annotated data, as in scanpy",
    "studio": "the application: page, session, server",
    "accel": "maps of programs that use other libraries, computed by the methods",
    "cli": "the command line, one file per verb",
    "__main__": "`python -m equipoise`, which runs the command line",
}

# File names that may occur in several folders because they mean the same in each.
SAME_MEANING = {
    "__init__",
    "__main__",  # what `python -m` runs
    "base",  # the protocol or base class of its folder
    "closed_form",  # methods with a closed form, and their losses
    "compare",  # a function of the library, and its verb on the command line
    "plot",
    "stability",
    "sweep",
}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NAMEDTUPLE = {"_replace", "_asdict", "_fields", "_make"}


@dataclass(frozen=True)
class Import:
    """One import: the importing module, the imported module, the line and the imported names."""

    source: str
    target: str
    line: int
    names: tuple[str, ...]


class Package:
    """The modules of the package at `root` and the imports between them."""

    def __init__(self, root: Path):
        self.root = root
        self.name = root.name
        self.paths = {self._module(path): path for path in sorted(root.rglob("*.py"))}
        self.trees = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in self.paths.items()}
        self._callables: dict[str, set[str]] = {}
        self.imports = [found for module in self.paths for found in self._imports(module)]

    def _module(self, path: Path) -> str:
        parts = list(path.relative_to(self.root).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _imports(self, module: str) -> Iterator[Import]:
        """Yield a module's imports from within the package, including imports inside functions."""
        package = module.split(".") if module else []
        if self.paths[module].name != "__init__.py":
            package = package[:-1]
        for node in _runtime_nodes(self.trees[module]):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == self.name:
                        yield Import(module, alias.name.partition(".")[2], node.lineno, ())
            elif isinstance(node, ast.ImportFrom):
                if node.level:
                    full = ".".join(
                        [*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]
                    )
                elif node.module and node.module.split(".")[0] == self.name:
                    full = node.module.partition(".")[2]
                else:
                    continue
                for alias in node.names:
                    child = f"{full}.{alias.name}".lstrip(".")
                    if child in self.paths or child == "_core":
                        yield Import(module, child, node.lineno, ())
                    else:
                        yield Import(module, full, node.lineno, (alias.name,))

    def unknown(self) -> list[str]:
        """Return the entries of the root that are missing from `LAYERS`."""
        return sorted({_entry(module) for module in self.paths} - set(LAYERS) - {""})

    def upward(self) -> list[str]:
        """Return the imports of an entry further down the list; the root itself may import everything."""
        order = {entry: number for number, entry in enumerate(LAYERS)}
        return [
            f"{found.source or self.name}:{found.line} imports {found.target or self.name}, which stands below it"
            for found in self.imports
            if found.source and order.get(_entry(found.target), len(order)) > order.get(_entry(found.source), -1)
        ]

    def cycles(self) -> list[str]:
        """Return the groups of modules that import one another, directly or through others."""
        graph = defaultdict(set)
        for found in self.imports:
            if found.source and found.source != found.target:
                graph[found.source].add(found.target)
        return [" <-> ".join(sorted(group)) for group in _strong_components(graph) if len(group) > 1]

    def repeated_names(self) -> list[str]:
        """Return the file names that occur more than once and are not listed in `SAME_MEANING`."""
        places = defaultdict(list)
        for path in self.paths.values():
            places[path.stem].append(path.relative_to(self.root).as_posix())
        return [
            f"{stem}: {', '.join(where)}"
            for stem, where in sorted(places.items())
            if len(where) > 1 and stem not in SAME_MEANING
        ]

    def private_names(self) -> list[str]:
        """Return the uses of a private name that another module defines.

        A leading underscore marks a name of its module, or a member of its class and the classes derived from it.
        """
        result = [
            f"{found.source}:{found.line} imports {name} from {found.target}"
            for found in self.imports
            for name in found.names
            if _is_private(name)
        ]
        defined = {module: _defined_names(tree) for module, tree in self.trees.items()}
        ours = set().union(*defined.values())  # private names of other packages are ignored
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Attribute)
                    and _is_private(node.attr)
                    and node.attr in ours - defined[module]
                    and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
                    and not (isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super")
                ):
                    result.append(f"{module}:{node.lineno} uses {ast.unparse(node)}")
        return result

    def long_functions(self, lines: int) -> list[str]:
        """Return the functions with at least `lines` lines; the lines of docstrings do not count."""
        return [
            f"{module}.{node.name}: {_length(node)} lines"
            for module, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, FUNCTIONS) and _length(node) >= lines
        ]

    def long_files(self, lines: int) -> list[str]:
        """Return the files with more than `lines` lines."""
        counts = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in self.paths.values()}
        return [f"{path.relative_to(self.root)}: {count} lines" for path, count in counts.items() if count > lines]

    def long_signatures(self, arguments: int, callables: int) -> list[str]:
        """Return the functions with more arguments (without `self`) or more callables than allowed.

        An argument is a callable if its annotation names `Callable`, or an alias or protocol that stands for one.
        """
        result = []
        for module, tree in self.trees.items():
            names = self._callable_names(module)
            for node in ast.walk(tree):
                if isinstance(node, FUNCTIONS):
                    given = [a for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                    given = [a for a in given if a.arg not in ("self", "cls")]
                    called = [a for a in given if a.annotation and _names(a.annotation) & names]
                    kernel = any("jit" in ast.unparse(decorator) for decorator in node.decorator_list)
                    if (len(given) > arguments and not kernel) or len(called) > callables:
                        result.append(f"{module}.{node.name}: {len(given)} arguments, {len(called)} callables")
        return result

    def _callable_names(self, module: str) -> set[str]:
        """Return the names that stand for a callable in a module: `Callable`, aliases, and protocols of `__call__`."""
        if module in self._callables:
            return self._callables[module]
        names = self._callables[module] = {"Callable"}  # stored first, for modules that import one another
        for found in self.imports:
            if found.source == module and found.names and found.target in self.paths:
                names |= set(found.names) & self._callable_names(found.target)
        for node in self.trees[module].body:
            if isinstance(node, ast.ClassDef):
                methods = {member.name for member in node.body if isinstance(member, FUNCTIONS)}
                if "__call__" in methods and any("Protocol" in _names(base) for base in node.bases):
                    names.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _names(node.value) & names:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
        return names


def _entry(module: str) -> str:
    return module.partition(".")[0]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMEDTUPLE


def _names(node: ast.AST) -> set[str]:
    """Return the names in an expression: `Callable` for both `Callable` and `typing.Callable`."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function without its docstring."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        length -= (first.end_lineno or first.lineno) - first.lineno + 1
    return length


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node outside `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _runtime_nodes(node)


def _defined_names(tree: ast.AST) -> set[str]:
    """Return the names that a module defines: functions, classes, assigned variables and attributes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _strong_components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a directed graph (Tarjan 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for after in sorted(graph.get(node, ())):
            if after not in number:
                visit(after)
                low[node] = min(low[node], low[after])
            elif after in stack:
                low[node] = min(low[node], number[after])
        if low[node] == number[node]:
            group = set()
            while True:
                group.add(member := stack.pop())
                if member == node:
                    break
            found.append(group)

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found

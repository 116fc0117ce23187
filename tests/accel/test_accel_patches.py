"""Functions are replaced in place, also in modules that are imported later, and put back without a trace."""

import importlib
import sys

import pytest

from equipoise import accel
from equipoise.accel.answer import Answer
from equipoise.accel.calls import NotAvailable, Record
from equipoise.accel.patches import Patches

LIBRARY = """
class Base:
    def inherited(self, X):
        return ("original", X)

class Map(Base):
    def fit(self, X):
        "Fit the map."
        return ("original", X)

def function(X):
    return ("original", X)
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """The name of an importable module with classes to patch."""
    (tmp_path / "small_library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    yield "small_library"
    sys.modules.pop("small_library", None)


def answer(*args):
    X = args[-1] if len(args) else "refused"
    if X == "fails":
        raise ValueError("cannot\nsecond line")
    if X == "refused":
        raise NotAvailable("refused by a rule")
    return ("answered", X)


def patches_of(library, record, *paths):
    return Patches([Answer(library, path, f"small.{path}", "ours", answer).patch(record) for path in paths])


def test_methods_inherited_methods_and_functions_are_replaced_and_put_back(library):
    module = importlib.import_module(library)
    before = {name: dict(vars(owner)) for name, owner in [("Map", module.Map), ("Base", module.Base)]}
    function = module.function
    patches = patches_of(library, Record(), "Map.fit", "Map.inherited", "function", "Map.absent", "Absent.fit")
    patches.apply()
    patches.apply()  # a second time changes nothing
    assert module.Map().fit(1) == module.Map().inherited(1) == module.function(1) == ("answered", 1)
    assert module.Base().inherited(1) == ("original", 1)
    assert module.Map.fit.__doc__ == "Fit the map."
    patches.undo()
    patches.undo()
    assert {name: dict(vars(getattr(module, name))) for name in before} == before
    assert module.function is function


def test_modules_imported_later_are_patched_and_their_loader_is_unchanged(library):
    finders = list(sys.meta_path)
    patches = patches_of(library, Record(), "Map.fit")
    patches.apply()
    assert library not in sys.modules
    module = importlib.import_module(library)
    assert module.Map().fit(1) == ("answered", 1)
    assert "exec_module" not in vars(module.__loader__)
    assert importlib.reload(module).Map().fit(1) == ("answered", 1)
    patches.undo()
    assert sys.meta_path == finders
    assert module.Map().fit(1) == ("original", 1)


def test_a_module_that_fails_to_import_raises_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("raise OSError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    patches = patches_of("broken_library", Record(), "Map.fit")
    patches.apply()
    with pytest.raises(OSError, match="broken"):
        importlib.import_module("broken_library")
    patches.undo()


def test_calls_are_recorded_with_the_reason_they_fell_back(library):
    module = importlib.import_module(library)
    record = Record()
    patches = patches_of(library, record, "Map.fit")
    patches.apply()
    results = [module.Map().fit(X)[0] for X in (1, 2, "refused", "fails")]
    patches.undo()
    assert results == ["answered", "answered", "original", "original"]
    assert [(row.name, row.by, row.why, row.count) for row in record.rows()] == [
        ("small.Map.fit", "ours", "", 2),
        ("small.Map.fit", "the original", "refused by a rule", 1),
        ("small.Map.fit", "the original", "ValueError: cannot", 1),
    ]
    lines = record.table().splitlines()
    assert lines[0] == "equipoise.accel: 2 calls answered by Equipoise, 2 by the original"
    assert [line.split()[:2] for line in lines[1:3]] == [["call", "answered"], ["small.Map.fit", "ours"]]
    assert lines[3].endswith("  refused by a rule")


def test_an_error_of_the_original_is_raised_without_a_trace_of_ours(library):
    module = importlib.import_module(library)
    patches = patches_of(library, Record(), "function")
    patches.apply()
    with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
        module.function()
    patches.undo()
    assert caught.value.__context__ is None


def test_installation_ends_with_its_block_unless_it_was_there_before(capsys):
    with accel.accelerated():
        assert accel.installed()
    assert not accel.installed()
    accel.install()
    with accel.accelerated():
        pass
    assert accel.installed()
    accel.uninstall()
    accel.report()
    assert capsys.readouterr().err == "equipoise.accel: no calls\n"


def test_pacmap_is_left_to_the_original_with_a_reason(tmp_path, monkeypatch):
    (tmp_path / "pacmap").mkdir()
    (tmp_path / "pacmap" / "__init__.py").write_text("from .pacmap import PaCMAP")  # stands in for the package
    (tmp_path / "pacmap" / "pacmap.py").write_text("class PaCMAP:\n    def fit(self, X):\n        return 'original'\n")
    for name in ("pacmap", "pacmap.pacmap"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with accel.accelerated():
        assert importlib.import_module("pacmap").PaCMAP().fit([[0.0]]) == "original"
        rows = [(row.name, row.by, row.why) for row in accel.calls()]
    assert rows == [("pacmap.PaCMAP", "the original", "no method of Equipoise has PaCMAP's loss")]
    for name in ("pacmap", "pacmap.pacmap"):
        sys.modules.pop(name)

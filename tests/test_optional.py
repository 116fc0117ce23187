"""Imports of optional packages say whether a package is missing, broken or too large."""

import pytest

from equipoise._optional import import_optional


def test_a_missing_package_is_named_with_its_extra():
    with pytest.raises(ImportError, match=r'a page needs absent_package: pip install "equipoise\[pages\]"'):
        import_optional("absent_package", "pages", "a page")


@pytest.mark.parametrize(
    ("reason", "error", "message"),
    [
        (
            "undefined symbol: f",
            ImportError,
            "a page needs broken, which is installed but cannot be imported: undefined",
        ),
        ("libx.so: failed to map segment from shared object", MemoryError, "broken, which does not fit into memory"),
    ],
)
def test_a_package_that_cannot_be_imported_gives_the_reason(tmp_path, monkeypatch, reason, error, message):
    (tmp_path / "broken.py").write_text(f"raise ImportError({reason!r})")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(error, match=message):
        import_optional("broken", "pages", "a page")

"""The source tree around the tests. Tests that read it are skipped where there are only the tests and the package."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def missing(*paths):
    """Return why tests that read these paths cannot run here, or an empty string."""
    absent = [path for path in paths if not (ROOT / path).exists()]
    return f"there is no {' or '.join(absent)} beside the tests" if absent else ""


def needs(*paths):
    """Mark tests that read files of the source tree."""
    reason = missing(*paths)
    return pytest.mark.skipif(bool(reason), reason=reason)


def skip_module_without(*paths):
    """Skip all tests of a module that reads files of the source tree while it is imported."""
    if reason := missing(*paths):
        pytest.skip(reason, allow_module_level=True)

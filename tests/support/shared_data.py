"""Where tests look for the large data sets, which are not in the repository; tests that need them skip without them."""

from pathlib import Path

SHARED = Path(__file__).parents[3] / "shared" / "data"

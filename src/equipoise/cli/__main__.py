"""Run the command line with `python -m equipoise.cli`."""

import sys

from . import main

sys.exit(main())

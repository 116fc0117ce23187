"""Run the command line with `python -m equipoise`."""

import sys

from .cli import main

sys.exit(main())

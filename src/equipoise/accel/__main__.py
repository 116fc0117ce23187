"""Run a script or module with its maps answered by Equipoise: `python -m equipoise.accel script.py [arguments]`."""

from __future__ import annotations

from .run_program import main

main()

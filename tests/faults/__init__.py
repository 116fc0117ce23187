"""Faults on purpose: signals at random moments, and damaged files.

`python -m tests.faults --signals 200 --mutations 5000` runs all of it; `test_faults.py` runs a short version.
"""

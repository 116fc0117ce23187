"""A fuzzer of the public interface: every input ends in finite results or in a clear error.

A case is a small dictionary that JSON can hold, and a pure function of a seed and a number (`cases.py`). Worker
processes with limits on time and memory run it (`worker.py`, `pool.py`), and its verdict is "finite", "clear error" or
"bad" (`verdicts.py`). Run `python -m tests.fuzz --help` from the root of the repository.
"""

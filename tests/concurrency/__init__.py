"""Many fits at once, and equal bytes on a busy machine; `python -m tests.concurrency` runs the long version."""

"""Work on several threads beside BLAS."""

import pytest

from equipoise.linalg import pca


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_work_runs_on_fewer_threads_when_none_can_be_started(monkeypatch, allowed):
    start, started = pca.Thread.start, []

    def limited_start(thread):
        if len(started) == allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(pca.Thread, "start", limited_start)
    done = []
    pca.run_on_threads(done.append, range(100), 4)
    assert sorted(done) == list(range(100)) and len(started) == min(allowed, 3)


def test_error_in_a_thread_is_raised_in_the_caller():
    def fail(item):
        raise MemoryError(f"item {item}")

    with pytest.raises(MemoryError, match="item"):
        pca.run_on_threads(fail, range(10), 3)

"""Work on several threads beside BLAS."""

import threading
import time

import pytest

from equipoise.arrays import threads


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_work_runs_on_fewer_threads_when_none_can_be_started(monkeypatch, allowed):
    start, started = threads.Thread.start, []

    def limited_start(thread):
        if len(started) == allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threads.Thread, "start", limited_start)
    done = []
    threads.run_on_threads(done.append, range(100), 4)
    assert sorted(done) == list(range(100)) and len(started) == min(allowed, 3)


def test_error_in_a_thread_is_raised_in_the_caller():
    def fail(item):
        raise MemoryError(f"item {item}")

    with pytest.raises(MemoryError, match="item"):
        threads.run_on_threads(fail, range(10), 3)


def test_interrupt_between_items_stops_the_threads(monkeypatch):
    class InterruptedLock:
        def __init__(self):
            self.lock = threading.Lock()

        def __enter__(self):
            if threading.current_thread() is threading.main_thread() and len(done) > 2:
                raise KeyboardInterrupt
            return self.lock.__enter__()

        def __exit__(self, *exception):
            return self.lock.__exit__(*exception)

    def work(item):
        time.sleep(0.01)
        done.append(item)

    done, before = [], threading.active_count()
    monkeypatch.setattr(pca, "Lock", InterruptedLock)
    with pytest.raises(KeyboardInterrupt):
        threads.run_on_threads(work, range(100), 3)
    assert threading.active_count() == before and len(done) < 50


def test_interrupt_while_waiting_for_threads_lets_them_finish(monkeypatch):
    join, taken, interrupted, done = threads.Thread.join, threading.Event(), threading.Event(), []

    def interrupted_join(thread, timeout=None):
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        join(thread, timeout)

    def work(item):
        if threading.current_thread() is threading.main_thread():
            assert taken.wait(60)
            return
        taken.set()
        assert interrupted.wait(60)
        time.sleep(0.2)
        done.append(item)

    monkeypatch.setattr(threads.Thread, "join", interrupted_join)
    with pytest.raises(KeyboardInterrupt):
        threads.run_on_threads(work, range(100), 2)
    assert len(done) == 1

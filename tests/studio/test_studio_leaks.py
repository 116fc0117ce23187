"""Pages of the studio that are opened and closed leave nothing behind."""

import gc
import os
import sys
import threading
import weakref

import pytest

pytest.importorskip("bokeh")
from support.studio import finish, opened_page

SESSIONS = int(os.environ.get("STUDIO_SESSIONS", "200"))


def open_files():
    """Return the number of open file descriptors; 0 where the system does not list them."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def resident_memory():
    """Return the memory of this process in bytes; 0 where the system does not tell."""
    if not os.path.isfile("/proc/self/statm"):
        return 0
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def use_page(folder, number):
    """Open a page, step its run, change a parameter, choose a point, export the map, and close it."""
    with opened_page(folder, session=f"session {number}") as page:
        finish(page)
        page._player.step(lambda: None)
        page._changed("exaggeration", 2.0)
        page._clicked([3])
        finish(page)
        assert page._picture.shot.frames[0].iteration == 1
        page.export("csv")
        return weakref.ref(page)


@pytest.mark.trials
def test_sessions_leave_no_threads_files_objects_or_memory(tmp_path):
    """Nothing grows with the number of sessions.

    The models of a page are about 6,000 objects in reference cycles, which only a collection frees. Bokeh's server
    collects after every session, and so does this test: left to Python, the cycles of some 20 sessions are freed
    together, and memory rises by 10 MB in the first 60 sessions and then no more.
    """

    def use_and_collect(number):
        page = use_page(tmp_path, number)
        gc.collect()
        assert page() is None

    for number in range(10):  # caches fill
        use_and_collect(number)
    threads, files, memory = threading.active_count(), open_files(), resident_memory()
    objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
    for number in range(SESSIONS):
        use_and_collect(number)
    assert threading.active_count() <= threads and open_files() <= files
    assert len(gc.get_objects()) - objects < 50 and sys.getallocatedblocks() - blocks < 1000
    assert resident_memory() - memory < 5 * 10**6  # 0.4 MB were measured after 60 sessions

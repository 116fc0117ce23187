"""Pages of the studio that are opened and closed leave nothing behind."""

import gc
import os
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
    for number in range(10):  # caches fill
        use_page(tmp_path, number)
    gc.collect()
    threads, files, objects = threading.active_count(), open_files(), len(gc.get_objects())
    memory = resident_memory()
    pages = [use_page(tmp_path, number) for number in range(SESSIONS)]
    gc.collect()
    assert sum(page() is not None for page in pages) == 0
    assert threading.active_count() <= threads and open_files() <= files
    assert len(gc.get_objects()) - objects < 10 * SESSIONS
    assert resident_memory() - memory < 10**6 * SESSIONS  # 160 kB a session were measured; their cause is not known

"""A JupyterLab on this machine, with settings of its own, and notebooks open in it."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

SECONDS = 240  # an upper bound for a start on a busy machine
NOTICES = "@jupyterlab/apputils-extension/notification.jupyterlab-settings"


@contextmanager
def jupyter_lab(folder):
    """Start JupyterLab in a folder, and yield a function that returns the address of a notebook in it."""
    import jupyterlab

    share = Path(jupyterlab.__file__).parents[4] / "share" / "jupyter"
    private = {name: folder / f".{name}" for name in ("config", "data", "runtime", "ipython", "settings", "workspaces")}
    notices = private["settings"] / NOTICES
    notices.parent.mkdir(parents=True)
    notices.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(private["config"]),
        "JUPYTER_DATA_DIR": str(private["data"]),
        "JUPYTER_RUNTIME_DIR": str(private["runtime"]),
        "JUPYTER_PATH": str(share),
        "JUPYTERLAB_SETTINGS_DIR": str(private["settings"]),
        "JUPYTERLAB_WORKSPACES_DIR": str(private["workspaces"]),
        "IPYTHONDIR": str(private["ipython"]),
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port, token = free.getsockname()[1], secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.app_dir={share / 'lab'}"]
    log = folder / ".jupyter.log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{address}/api/status?token={token}", server, log)
        yield lambda name: f"{address}/lab/tree/{name}?token={token}"
    finally:
        server.send_signal(signal.SIGTERM)  # ends the kernels too
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def wait_for(address, server, log):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text(errors="replace")[-3000:]
        try:
            with urllib.request.urlopen(address, timeout=10):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start in {SECONDS} seconds: {log.read_text(errors='replace')[-3000:]}")


def write_notebook(path, *cells):
    """Write a notebook of code cells."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    empty = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    code = [empty | {"id": f"cell{i}", "source": text} for i, text in enumerate(cells)]
    path.write_text(json.dumps({"cells": code, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}))


def run_cell(tab, number=0):
    """Run a cell of the notebook that is open in a tab; press the keys again if the kernel was not ready for them."""
    cell = tab.locator(".jp-Notebook .jp-CodeCell").nth(number)
    cell.wait_for()
    prompt = cell.locator(".jp-InputPrompt").first
    tab.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    for _ in range(5):
        cell.locator(".cm-content").click()
        tab.keyboard.press("Control+Enter")
        end = time.monotonic() + SECONDS / 5
        while time.monotonic() < end:
            if prompt.inner_text().strip() not in ("", "[ ]:"):
                return
            tab.wait_for_timeout(100)
    raise AssertionError(f"the kernel did not run the cell in {SECONDS} seconds")

"""Signal trials: disturb a run at a random moment, check its files, compare the next run with an undisturbed one."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .children import INTERRUPTED, Child, Ended
from .scenarios import SCENARIOS, Scenario, digest

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
ALLOWED = {  # exit codes of a process that got a signal and had not ended before: of the library, and of a command
    signal.SIGTERM: ((-signal.SIGTERM,), (143, -signal.SIGTERM)),
    signal.SIGINT: ((INTERRUPTED,), (130,)),
    signal.SIGKILL: ((-signal.SIGKILL,), (-signal.SIGKILL,)),
}
STUDIO_TIME = 0.5  # seconds after its start in which the studio is disturbed


@dataclass(frozen=True)
class Trial:
    """The result of a trial: what was done, and what was wrong with it ("" if nothing)."""

    name: str
    signal: str
    moment: float
    code: int | None
    problem: str


class Trials:
    """Trials in subfolders of `folder`; an undisturbed run of each scenario is made first."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.seconds: dict[str, float] = {}
        for name, scenario in SCENARIOS.items():
            (self._undisturbed(name)).mkdir(parents=True)
            if scenario.starts:
                continue
            ended = Child(lambda scenario=scenario: scenario.run(False), self._undisturbed(name)).wait()
            if ended.code != 0:
                raise RuntimeError(f"the undisturbed run of {name!r} failed: {ended.err[-2000:]}")
            self.seconds[name] = ended.seconds

    def _undisturbed(self, name: str) -> Path:
        return self.folder / "undisturbed" / name

    def run(self, number: int, seed: int) -> Trial:
        """Make the trial with this number: scenario and signal in turn, at a random moment."""
        rng = np.random.default_rng([seed, number])
        name = list(SCENARIOS)[number % len(SCENARIOS)]
        sent = SIGNALS[number // len(SCENARIOS) % len(SIGNALS)]
        folder = self.folder / f"trial {number}"
        folder.mkdir()
        scenario = SCENARIOS[name]
        child = Child(lambda: scenario.run(False), folder)
        moment = rng.uniform(0, 0.95) * self.seconds.get(name, STUDIO_TIME)
        if scenario.starts:
            _wait_for(scenario.starts, child)
        time.sleep(moment)
        with suppress(ProcessLookupError):
            os.kill(child.pid, sent)
        ended = child.wait()
        if ended.code == 0 and not scenario.starts:  # faster than the undisturbed run: aim earlier
            self.seconds[name] = min(self.seconds[name], ended.seconds)
        try:
            self._judge(name, sent, folder, ended)
            problem = ""
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if not problem:
            shutil.rmtree(folder)
        return Trial(name, sent.name, round(moment, 3), ended.code, problem)

    def _judge(self, name: str, sent: signal.Signals, folder: Path, ended: Ended) -> None:
        """Raise unless the disturbed run left whole files and the next one ends as an undisturbed run."""
        scenario, undisturbed = SCENARIOS[name], self._undisturbed(name)
        if ended.code is None:
            raise AssertionError("hung after the signal")
        _check_exit(scenario, sent, ended)
        scenario.whole(folder, undisturbed)
        again = Child(lambda: scenario.run(True), folder).wait()
        if again.code != 0:
            raise AssertionError(f"the next start ended with {again.code}: {again.err[-1000:]}")
        for output in scenario.outputs:
            if digest(folder / output) != digest(undisturbed / output):
                raise AssertionError(f"{output} differs after the next start")
        expected = {path.name for path in undisturbed.iterdir()} | {"stdout.txt", "stderr.txt"}
        if extra := {path.name for path in folder.iterdir()} - expected:
            raise AssertionError(f"files were left behind: {', '.join(sorted(extra))}")


def _check_exit(scenario: Scenario, sent: signal.Signals, ended: Ended) -> None:
    allowed = ALLOWED[sent][scenario.is_command]
    if ended.code not in (0, *allowed):
        raise AssertionError(f"exit code {ended.code} instead of {allowed[0]}: {ended.err[-1000:]}")
    if "Traceback" in ended.err:
        raise AssertionError(f"printed a traceback: {ended.err[-1000:]}")


def _wait_for(text: str, child: Child) -> None:
    begin = time.monotonic()
    while text not in child.output() and time.monotonic() - begin < 60:
        time.sleep(0.01)

"""Tells W&B how runs go: configuration, curves, and the sweep as table and chart."""

from __future__ import annotations

import os
import shlex
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from algolen import statistics
from algolen.config import RunConfig
from algolen.experiment import Experiment
from algolen.listener import Listener
from algolen.recording import IN_DISTRIBUTION_LOSS, LOSS
from algolen.store import Ending, EvaluationRow, PointKey, Store
from algolen.tracking import Destination
from algolen.tracking.process import Process
from algolen.training.loop import Check

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = {"offline": 120.0, "online": 30.0}
"""Seconds to wait for W&B at the end, when all else is done; offline nothing but a busy machine takes time."""

PATIENCE_AT_ONCE = 5.0
"""The same, where the user wants to stop at once."""

UNNOTICED = 2.0
"""Seconds of waiting that nothing is said about."""

SAID = "W&B: "
"""What every line about W&B begins with."""

NOTHING = "nothing was trained or tested, so nothing is logged"
"""What is said where W&B was told nothing."""

COLUMNS = ("test set", "axis", "axis value", "length", "exact", "units", "exact match", "low", "high")
"""Of the sweep's table; low and high are the ends of the 95 % Wilson interval."""

EXIT_CODES: Mapping[str, int] = {"done": 0, "interrupted": 130}
"""What W&B is told by how a run ended; 1 for all that is not here."""

LONGEST_TAG, LONGEST_NAME, LONGEST_REASON = 64, 128, 300
"""Characters that W&B takes, and that we show of an error."""


def follow(
    destination: Destination | None, experiments: Iterable[Experiment], store: Store, console: Console
) -> AbstractContextManager[Listener]:
    """Who tells W&B of the runs of some experiments, for as long as the context lasts; nobody without a destination."""
    return nullcontext(Listener()) if destination is None else Tracking(destination, experiments, store, console)


class Tracking(Listener):
    """One W&B run for each of ours, named by our id; use as a context manager. `experiments` are those of all runs.

    Nothing raises, and nothing waits but leaving the context, for a bounded time. The first thing that goes wrong is
    said on the console, and no further run of this process is logged.
    """

    def __init__(
        self, destination: Destination, experiments: Iterable[Experiment], store: Store, console: Console
    ) -> None:
        self.destination, self.store, self.console = destination, store, console
        self.experiments = {experiment.config.hash(): experiment for experiment in experiments}
        self._failed = False
        self._current: Process | None = None
        self._processes: list[Process] = []
        self._kept: dict[Process, Path] = {}
        self._finished: set[Process] = set()

    def __enter__(self) -> Tracking:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        at_once = kind is not None and issubclass(kind, KeyboardInterrupt)
        try:
            self._wait(PATIENCE_AT_ONCE if at_once else PATIENCE[self.destination.mode])
        finally:
            for process in self._processes:
                process.kill()
            self._say_where()

    # What it is told --------------------------------------------------------------------------------------------------

    def training(self, run_id: str, seed: int, parameters: int, at_step: int, steps: int) -> None:
        if self._failed:
            return
        with self._harmless():
            self._current = Process(self._start(run_id, seed, at_step), self._heard)
            self._processes.append(self._current)
            if at_step:
                self._send("before", self._before(run_id, at_step))

    def logged(self, curve: Mapping[int, float]) -> None:
        self._send("log", [{"step": step, LOSS: loss} for step, loss in curve.items()])

    def checked(self, check: Check) -> None:
        row: dict[str, float] = {"step": check.step, IN_DISTRIBUTION_LOSS: check.loss}
        for point in check.points:
            row[_beyond(point.test_set.length)] = point.total.exact / point.total.units
        self._send("log", [row])

    def measured(self, evaluation: EvaluationRow, step: int) -> None:
        with self._harmless():
            self._send("sweep", self._sweep(evaluation, step))

    def ended(self, status: Ending, reason: str) -> None:
        summary = {"status": status, **({"reason": reason} if reason else {})}
        self._send("end", {"exit_code": EXIT_CODES.get(status, 1), "summary": summary})
        if self._current is not None:
            self._current.close()
            self._current = None

    def _send(self, kind: str, content: Any) -> None:
        if self._current is not None:
            self._current.send(kind, content)

    # What W&B is told -------------------------------------------------------------------------------------------------

    def _start(self, run_id: str, seed: int, at_step: int) -> dict[str, Any]:
        config = self._config(run_id)
        what = f"{config.task} {config.pe}"
        return {
            "mode": self.destination.mode,
            "project": self.destination.project,
            "folder": str(self.destination.folder.resolve()),
            "id": run_id,
            "name": f"{what[: LONGEST_NAME - 30]} seed {seed}",
            "group": f"{what[: LONGEST_NAME - 30]} {config.hash()}",
            "tags": [config.task[:LONGEST_TAG], config.pe[:LONGEST_TAG]],
            "config": {**config.to_dict(), "seed": seed, "hash": config.hash()},
            "goes_on": at_step > 0,
        }

    def _before(self, run_id: str, at_step: int) -> list[dict[str, float]]:
        """The curves up to where training goes on: W&B has them only if it resumes a run that it knows."""
        rows: dict[int, dict[str, float]] = defaultdict(dict)
        for name in (LOSS, IN_DISTRIBUTION_LOSS):
            for point in self.store.curve(run_id, name):
                rows[point.step][name] = point.value
        for step, length, match in self.store.development_curves(run_id):
            rows[step][_beyond(length)] = match
        return [{"step": step, **rows[step]} for step in sorted(rows) if step <= at_step]

    def _sweep(self, evaluation: EvaluationRow, step: int) -> dict[str, Any]:
        """All that is stored of an evaluation, of earlier commands too, so that the table is never a part of it."""
        counts: dict[PointKey, list[int]] = defaultdict(lambda: [0, 0])
        for row in self.store.strata(evaluation.run_id):
            if row.evaluation.id == evaluation.id:
                counts[row.key][0] += row.count.exact
                counts[row.key][1] += row.count.units
        table, curves = [], defaultdict[str, dict[int, float]](dict)
        for key, (exact, units) in sorted(counts.items()):
            match = statistics.exact_match(exact, units)
            place = [key.test_set, key.axis, key.axis_value, key.length]
            table.append([*place, exact, units, match, *statistics.wilson(exact, units)])
            curves[_series(key)][key.length] = match
        return {
            "step": step,
            "columns": COLUMNS,
            "rows": table,
            "chart": [[length, match, series] for series, curve in curves.items() for length, match in curve.items()],
            "summary": _horizons(curves, self._config(evaluation.run_id).train_lengths),
        }

    def _config(self, run_id: str) -> RunConfig:
        return self.experiments[run_id.rpartition("-")[0]].config

    # What comes of it -------------------------------------------------------------------------------------------------

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._fail(" ".join(str(error).split()) or type(error).__name__)

    def _heard(self, process: Process, kind: str, text: str) -> None:
        if kind == "kept":
            self._kept[process] = Path(text)
        elif kind == "url":
            self._say(f"looked at here: {text}")
        elif kind == "finished":
            self._finished.add(process)
        else:
            self._fail(text, process)

    def _fail(self, reason: str, process: Process | None = None) -> None:
        if self._failed:
            return
        self._failed = True
        hint = ""
        if process in self._kept:
            hint = f"; {self._how_to_send('what there is', [process])}"
        elif self.destination.mode == "online":
            hint = "; `wandb login` logs in where that is missing, --wandb offline keeps the log here"
        shown = reason.rstrip(".") if len(reason) <= LONGEST_REASON else reason[: LONGEST_REASON - 1] + "…"
        self._say(f"{shown}. Nothing more is logged there; training is not affected{hint}")

    def _wait(self, seconds: float) -> None:
        """Waits until all processes have ended, no longer than some seconds."""
        deadline, silent_until = time.monotonic() + seconds, time.monotonic() + UNNOTICED
        for process in self._processes:
            process.close()
        for process in self._processes:
            if process.wait(silent_until - time.monotonic()):
                continue
            if silent_until < deadline:
                self._say(f"still at work; waiting {seconds:.0f} s at most, Ctrl-C ends that")
                silent_until = deadline
            process.wait(deadline - time.monotonic())

    def _say_where(self) -> None:
        """Where logs lie that have not been sent, and how to send them; not where something else was said already."""
        late = [process for process in self._processes if process not in self._finished]
        if self._failed:
            return
        if not self._processes:
            self._say(NOTHING)
            return
        if late:
            self._say(f"not done in time and ended; {self._how_to_send('what there is', late)}")
        elif self.destination.mode == "offline":
            self._say(f"the log is kept here; {self._how_to_send('it', self._processes)}")

    def _how_to_send(self, what: str, processes: Sequence[Process]) -> str:
        folders = [_shown(self._kept[process]) for process in processes if process in self._kept]
        return f"send {what} with: wandb sync {shlex.join(folders)}" if folders else "there is nothing to send"

    def _say(self, text: str) -> None:
        self.console.print(f"{SAID}{text}", markup=False, soft_wrap=True)


def _horizons(curves: Mapping[str, Mapping[int, float]], trained: Sequence[int]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for series, curve in curves.items():
        found[f"horizon/{series}"] = statistics.horizon(curve, (trained[0], trained[-1])).length
        found[f"tested to/{series}"] = max(curve)
    return found


def _beyond(length: int) -> str:
    """The name of a development curve; W&B shows together what is named alike before the slash."""
    return f"development exact match/length {length}"


def _series(key: PointKey) -> str:
    return f"{key.test_set}, {key.axis} {key.axis_value:g}" if key.axis else key.test_set


def _shown(path: Path) -> str:
    """A path as short as it can be typed here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative

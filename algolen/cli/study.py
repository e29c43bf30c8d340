"""`algolen study`: train and test every encoding of a study, or the trials its recipes are chosen by."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Database, Device, Plugins
from algolen.cli.stopping import Stop, signals

if TYPE_CHECKING:
    import torch

    from algolen.execution import Outcome
    from algolen.store import Store
    from algolen.sweep.plan import Planned, Run


def study(
    names: Annotated[
        list[str] | None, typer.Argument(help="Studies that come with algolen, or TOML files. Without any: a list.")
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", min=1, max=1024, help="How many train at once, one thread each.")
    ] = 1,
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="Instead of the seeds in the files, as in 0 or 3-9.")
    ] = None,
    trials: Annotated[
        bool, typer.Option("--trials", help="Train every encoding with every recipe of the file, and compare those.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Only the encodings that the files mark as quick.")] = False,
    plugin: Plugins = None,
    device: Device = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done and stop.")] = False,
    db: Database = common.DATABASE,
    as_json: AsJson = False,
    worker: Annotated[
        str | None, typer.Option("--worker", hidden=True, help="Which of how many processes this is, as in 1/2.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", hidden=True, help="When the first process began.")] = None,
) -> int:
    """Train, test and report all encodings of a study; the same command goes on where it stopped.

    The database says what is done: any number of processes share the work, and only what is missing is trained.
    """
    from algolen.errors import UserError
    from algolen.lengths import seeds as parse_seeds
    from algolen.sweep import study as studies
    from algolen.sweep.plan import plan

    if not names:
        asked = [("--trials", trials), ("--quick", quick), ("--dry-run", dry_run), ("--seeds", seeds is not None)]
        if given := [name for name, value in asked if value]:
            raise UserError(f"{given[0]} needs the name of a study; there are {', '.join(studies.names())}")
        return _list(db, as_json)
    registry = common.registry(plugin)
    wanted = parse_seeds(seeds) if seeds is not None else None
    read = [studies.load(name) for name in dict.fromkeys(names)]
    planned = [plan(one, registry, trials, quick, wanted) for one in read]
    if dry_run:
        from algolen.cli import study_tables

        study_tables.print_plans(planned, db, as_json)
        return 0
    options = [(name, value) for name, value in (("--seeds", seeds), *(("--plugin", path) for path in plugin or ()))]
    arguments = [part for name, value in options if value is not None for part in (name, str(value))]
    arguments += ["--trials"] * trials + ["--quick"] * quick + ["--device", device, "--db", str(db)]
    job = _Job(planned, common.find_device(device), db, [*dict.fromkeys(names), *arguments])
    return job.share(worker, since) if worker else job.run(processes, trials, as_json)


def _list(db: Path, as_json: bool) -> int:
    from algolen.cli import study_tables
    from algolen.sweep import study as studies

    study_tables.print_list([studies.load(name) for name in studies.names()], common.registry(None), db, as_json)
    return 0


@dataclass(frozen=True)
class _Job:
    """The runs of some studies, to be trained into a database; `arguments` are what workers are started with."""

    planned: Sequence[Sequence[Planned]]
    device: torch.device
    db: Path
    arguments: Sequence[str]

    def runs(self) -> list[Run]:
        from algolen.sweep.plan import runs

        return runs(one for own in self.planned for one in own)

    def run(self, processes: int, trials: bool, as_json: bool) -> int:
        """Trains what is missing, alone or with workers, and prints what came out."""
        from algolen.cli import study_tables
        from algolen.execution import check_folder
        from algolen.store import Store

        check_folder(self.db.parent / "runs")
        with Store.open(self.db, create=True) as store:
            with signals() as stop:
                well = self._supervise(store, processes, stop) if processes > 1 else self._alone(store, stop)
            if stop.asked():
                return stop.exit_code
            print_all = study_tables.print_choices if trials else study_tables.print_reports
            print_all(store, self.planned, as_json)
        return 0 if well else 1

    def share(self, worker: str, since: str | None) -> int:
        """One of several processes at it; it stops when the process that started it is gone."""
        from algolen.store import Store

        number, of = (int(part) for part in worker.split("/"))
        parent, runs = os.getppid(), self.runs()
        with Store.open(self.db, create=True) as store, signals() as stop:
            asked = lambda: stop.asked() or os.getppid() != parent  # noqa: E731
            outcomes = self._work(store, asked, since, len(runs) * (number - 1) // of)
        return stop.exit_code if stop.asked() else int(any(_bad(outcome) for outcome in outcomes.values()))

    def _alone(self, store: Store, stop: Stop) -> bool:
        outcomes = self._work(store, stop.asked)
        return not any(_bad(outcome) for outcome in outcomes.values())

    def _work(
        self, store: Store, asked: Callable[[], bool], since: str | None = None, first: int = 0
    ) -> dict[str, Outcome]:
        from algolen.cli.progress import Listener
        from algolen.store.base import now
        from algolen.sweep.worker import Worker

        common.set_threads(1)
        err, runs = common.console(stderr=True), self.runs()

        def before(run: Run, ended: int) -> None:
            err.print(f"{run} ({ended + 1} of {len(runs)})", markup=False, soft_wrap=True)

        def after(run: Run, outcome: Outcome) -> None:
            if outcome.status != "done":
                err.print(f"{run}: {outcome.status}: {outcome.reason}", markup=False, soft_wrap=True)

        with Listener(err) as listener:
            folder = self.db.parent / "runs"
            worker = Worker(store, folder, self.device, listener, asked, since or now(), before, after)
            return worker.work(runs, first)

    def _supervise(self, store: Store, processes: int, stop: Stop) -> bool:
        """Starts the workers and shows how far they are; whether all went well."""
        from algolen.cli.overview import Overview
        from algolen.store.base import now
        from algolen.sweep.processes import supervise

        began, runs = now(), self.runs()
        folder, stem = self.db.parent / "runs", "-".join(own[0].study.name for own in self.planned)
        logs = [folder / f"{stem if len(stem) < 60 else 'studies'}-{number}.log" for number in range(1, processes + 1)]
        base = [sys.executable, "-m", "algolen", "study", *self.arguments, "--since", began, "--worker"]
        commands = [[*base, f"{number}/{processes}"] for number in range(1, processes + 1)]
        err = common.console(stderr=True)
        err.print(f"{len(runs):,} runs in {processes} processes, which write to {logs[0]} …", soft_wrap=True)
        with Overview(err, store, runs, began) as overview:
            codes = supervise(commands, logs, lambda: stop.signal, overview.look)
        for code, log in zip(codes, logs, strict=True):
            if code and not stop.asked():
                err.print(f"a process ended with code {code}; {log} says why", soft_wrap=True)
        # A worker that ended well has seen every run finished, whatever became of the others.
        return 0 in codes


def _bad(outcome: Outcome) -> bool:
    """Whether a run is not finished. One that diverged is: that is its result."""
    return outcome.status not in ("done", "diverged")

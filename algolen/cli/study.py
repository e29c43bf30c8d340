"""`algolen study`: train and test every encoding of a study, or the trials its recipes are chosen by."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Database, Device, Plugins, Wandb, WandbProject
from algolen.cli.stopping import Stop, signals

if TYPE_CHECKING:
    import torch

    from algolen.execution import Outcome
    from algolen.store import Store
    from algolen.sweep.plan import Planned, Run
    from algolen.tracking import Destination

FINISHED = ("done", "diverged")
"""How runs end that need not be tried again; one that diverged has that as its result."""


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
    wandb: Wandb = "off",
    wandb_project: WandbProject = None,
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
    from algolen import tracking
    from algolen.errors import UserError
    from algolen.lengths import seeds as parse_seeds
    from algolen.sweep import study as studies
    from algolen.sweep.plan import plan

    if not names:
        asked = [
            ("--trials", trials), ("--quick", quick), ("--dry-run", dry_run), ("--seeds", seeds is not None),
            ("--wandb", wandb != "off"), ("--wandb-project", wandb_project is not None),
            ("--plugin", bool(plugin)), ("--processes", processes != 1), ("--device", device != "auto"),
        ]  # fmt: skip
        if given := [name for name, value in asked if value]:
            raise UserError(f"{given[0]} needs the name of a study; there are {', '.join(studies.names())}")
        return _list(db, as_json)
    tracked = tracking.destination(wandb, wandb_project, db.parent)
    registry = common.registry(plugin)
    wanted = parse_seeds(seeds) if seeds is not None else None
    read = [studies.load(name) for name in dict.fromkeys(names)]
    planned = [plan(one, registry, trials, quick, wanted) for one in read]
    if dry_run:
        from algolen.cli import study_tables

        study_tables.print_plans(planned, db, as_json)
        if tracked is not None:
            common.console(stderr=True).print(f"W&B: {tracked}", markup=False, soft_wrap=True)
        return 0
    options = [("--seeds", seeds), ("--wandb", wandb), ("--wandb-project", wandb_project)]
    options += [("--plugin", str(path)) for path in plugin or ()]
    arguments = [part for name, value in options if value is not None for part in (name, value)]
    arguments += ["--trials"] * trials + ["--quick"] * quick + ["--device", device, "--db", str(db)]
    job = _Job(planned, common.find_device(device), db, tracked, [*dict.fromkeys(names), *arguments])
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
    tracked: Destination | None
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
            well, stop = self._supervise(store, processes) if processes > 1 else self._work(store)
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
        with Store.open(self.db, create=True) as store:
            well, stop = self._work(store, lambda: os.getppid() != parent, since, len(runs) * (number - 1) // of)
        return stop.exit_code if stop.asked() else int(not well)

    def _work(
        self, store: Store, alone: Callable[[], bool] = lambda: False, since: str | None = None, first: int = 0
    ) -> tuple[bool, Stop]:
        """Works until all is done, a signal comes, or this process is left alone; whether all went well."""
        from algolen.cli.progress import Listener
        from algolen.listener import Listeners
        from algolen.store.base import now
        from algolen.sweep.worker import Worker
        from algolen.tracking.tracking import follow

        common.set_threads(1)
        err, runs = common.console(stderr=True), self.runs()

        def before(run: Run, ended: int) -> None:
            err.print(f"{run} ({ended + 1} of {len(runs)})", markup=False, soft_wrap=True)

        def after(run: Run, outcome: Outcome) -> None:
            if outcome.status != "done":
                err.print(f"{run}: {outcome.status}: {outcome.reason}", markup=False, soft_wrap=True)

        experiments = [one.experiment for own in self.planned for one in own]
        # W&B is waited for at the end, when signals do what they always do.
        with follow(self.tracked, experiments, store, err) as tracking, Listener(err) as shown, signals() as stop:
            asked = lambda: stop.asked() or alone()  # noqa: E731
            folder, listener = self.db.parent / "runs", Listeners(shown, tracking)
            worker = Worker(store, folder, self.device, listener, asked, since or now(), before, after)
            outcomes = worker.work(runs, first)
        return all(outcome.status in FINISHED for outcome in outcomes.values()), stop

    def _supervise(self, store: Store, processes: int) -> tuple[bool, Stop]:
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
        earlier = [log.stat().st_size if log.exists() else 0 for log in logs]
        with signals() as stop, Overview(err, store, runs, began) as overview:
            codes = supervise(commands, logs, lambda: stop.signal, overview.look)
        for code, log in zip(codes, logs, strict=True):
            if code and not stop.asked():
                err.print(f"a process ended with code {code}; {log} says why", soft_wrap=True)
        for line in _said_of_wandb(log.read_bytes()[size:] for log, size in zip(logs, earlier, strict=True)):
            err.print(line, markup=False, soft_wrap=True)
        # A worker that ended well has seen every run finished, whatever became of the others.
        return 0 in codes, stop


def _said_of_wandb(logs: Iterable[bytes]) -> list[str]:
    """The lines about W&B in what workers wrote, each once; that there was nothing to log, only if all had nothing."""
    from algolen.tracking.tracking import NOTHING, SAID

    written = [line for log in logs for line in log.decode(errors="replace").splitlines()]
    said = list(dict.fromkeys(line for line in written if line.startswith(SAID)))
    return [line for line in said if len(said) == 1 or line != f"{SAID}{NOTHING}"]

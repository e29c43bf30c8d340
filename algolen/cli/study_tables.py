"""What `algolen study` prints: the studies there are, what would be trained, reports, and how trials compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from algolen.cli import common
from algolen.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from algolen.registry import Registry
    from algolen.store import Store
    from algolen.sweep.plan import Planned, Run
    from algolen.sweep.study import Study
    from algolen.sweep.trials import Choice

Plans = Sequence[Sequence["Planned"]]
"""For each study, what it is made of."""


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def _done(runs: Sequence[Run], db: Path) -> dict[str, str]:
    """The status of each run in the database, where there is one."""
    from algolen.store import Store

    if not db.exists():
        return {}
    with Store.open(db) as store:
        rows = {run.id: store.find(run.id) for run in runs}
    return {name: row.status for name, row in rows.items() if row is not None}


# What there is --------------------------------------------------------------------------------------------------------


def print_list(studies: Sequence[Study], registry: Registry, db: Path, as_json: bool) -> None:
    """The studies: task, encodings, and how many of their runs and trials are done."""
    from algolen.sweep.plan import plan, runs

    found = []
    for study in studies:
        reported = runs(plan(study, registry))
        tried = runs(plan(study, registry, trials=True)) if study.trials else []
        statuses = Counter(_done(reported, db).values()), Counter(_done(tried, db).values())
        found.append(
            {
                "study": study.name,
                "title": study.header.title,
                "task": study.task,
                "encodings": list(study.labels),
                "runs": len(reported),
                "done": statuses[0]["done"],
                "trials": len(tried),
                "trials_done": statuses[1]["done"],
            }
        )
    if as_json:
        common.print_json(found)
        return
    console = common.console()
    for number, one in enumerate(found):
        console.print(f"{chr(10) * (number > 0)}[bold]{one['study']}[/bold]  {one['title']}", soft_wrap=True)
        console.print(f"  {one['task']} with {', '.join(str(name) for name in _as_list(one['encodings']))}")
        trials = f"; {one['trials_done']} of {one['trials']} trials" if one["trials"] else ""
        console.print(f"  done in {db}: {one['done']} of {one['runs']} runs{trials}", soft_wrap=True)


def _as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def print_plans(plans: Plans, db: Path, as_json: bool) -> None:
    """What would be trained, and what of it is there."""
    from algolen.sweep.plan import runs

    every = runs(planned for own in plans for planned in own)
    statuses = _done(every, db)
    if as_json:
        common.print_json([_planned(planned, statuses) for own in plans for planned in own])
        return
    console = common.console()
    for own in plans:
        console.print(f"[bold]{own[0].study.name}[/bold]  {own[0].study.header.title}\n", soft_wrap=True)
        table = _table("config", "encoding", "recipe", "seeds", "steps", "done", right=("steps", "done"))
        for planned in own:
            one = _planned(planned, statuses)
            done = sum(status == "done" for status in one["runs"].values())
            seeds = ", ".join(map(str, planned.seeds))
            row = (planned.label, planned.trial.name, seeds, f"{planned.steps:,}", f"{done}/{len(one['runs'])}")
            table.add_row(planned.hash[:6], *row)
        console.print(table)
        console.print()
    left = [run for run in every if statuses.get(run.id) not in ("done", "diverged")]
    steps = sum(run.planned.steps for run in left)
    console.print(f"{len(every):,} runs; {len(left):,} of them are to be trained: {steps:,} steps", soft_wrap=True)


def _planned(planned: Planned, statuses: dict[str, str]) -> dict[str, Any]:
    ids = [f"{planned.hash}-{seed}" for seed in planned.seeds]
    return {
        "study": planned.study.name,
        "encoding": planned.label,
        "recipe": planned.trial.name,
        "config": planned.hash,
        "steps": planned.steps,
        "runs": {name: statuses.get(name) for name in ids},
    }


# What came out --------------------------------------------------------------------------------------------------------


def print_reports(store: Store, plans: Plans, as_json: bool) -> None:
    """The report of each study; says so where one has no finished run."""
    from algolen.report import report

    console, rows = common.console(), []
    for own in plans:
        study, hashes = own[0].study, [planned.hash for planned in own]
        if not as_json:
            console.print(f"\n[bold]{study.name}[/bold]  {study.header.title}\n", soft_wrap=True)
        for kind in own[0].experiment.evaluation.test_sets:
            try:
                made = report(store, study.task, test_set=kind, configs=hashes)
            except UserError as error:
                common.console(stderr=True).print(f"{study.name}: {error}", markup=False, soft_wrap=True)
                continue
            rows += [{"study": study.name, **row} for row in made.to_json()]
            if not as_json:
                if kind != "random":
                    console.print(f"test set {kind}\n", style="bold")
                made.print(console)
    if as_json:
        common.print_json(rows)


def print_choices(store: Store, plans: Plans, as_json: bool) -> None:
    """What each recipe scored with each encoding, the best marked, and where the file has chosen another."""
    from algolen.sweep.trials import choices

    found = [(own[0].study, choices(store, own)) for own in plans]
    if as_json:
        common.print_json([_choice(study, choice) for study, own in found for choice in own])
        return
    for study, own in found:
        _print_choices(study, own)


def _choice(study: Study, choice: Choice) -> dict[str, Any]:
    return {
        "study": study.name,
        "encoding": choice.label,
        "scores": {trial.planned.trial.name: trial.score for trial in choice.trials},
        "runs": {trial.planned.trial.name: _ids(trial.planned) for trial in choice.trials},
        "best": list(choice.best),
        "chosen": choice.chosen,
        "agrees": choice.agrees,
    }


def _ids(planned: Planned) -> list[str]:
    return [f"{planned.hash}-{seed}" for seed in planned.seeds]


def _print_choices(study: Study, choices: Sequence[Choice]) -> None:
    from algolen.sweep.trials import SCORE

    console = common.console()
    console.print(f"\n[bold]{study.name}[/bold]  {study.header.title}\n", soft_wrap=True)
    table = _table("trials", *(trial.name for trial in study.trials), "chosen")
    for choice in choices:
        cells = []
        for trial in choice.trials:
            best = "*" if choice.complete and trial.planned.trial.name in choice.best else ""
            cells.append("·" if trial.score is None else f"{trial.score:.4f}{best}")
        table.add_row(choice.label, *cells, choice.chosen)
    console.print(table)
    seeds = ", ".join(map(str, choices[0].trials[0].planned.seeds))
    console.print(f"\nScore: {SCORE}, seed {seeds}; 0 where training diverged. * is the best; · is not there yet.")
    for choice in choices:
        if choice.agrees is False:
            best = " or ".join(choice.best)
            note = f"{choice.label}: {best} scored best, but {study.path} has chosen {choice.chosen}"
            console.print(note, style="red", markup=False, soft_wrap=True)

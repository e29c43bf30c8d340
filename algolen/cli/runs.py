"""`algolen runs`: what was trained, is being trained, or came to grief."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from algolen.cli import common

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from algolen.errors import UserError
    from algolen.store import RunRow, Store

STYLES = {"done": "green", "running": "cyan", "failed": "red", "diverged": "magenta", "interrupted": "yellow"}


def runs(
    task: Annotated[str | None, typer.Option(help="Only runs of this task.")] = None,
    pe: Annotated[str | None, typer.Option(help="Only runs with this encoding, as typed or as it expands.")] = None,
    status: Annotated[str | None, typer.Option(help="Only runs with this status: done, running, failed, …")] = None,
    trials: common.Trials = False,
    json: common.AsJson = False,
    db: common.Database = common.DATABASE,
) -> None:
    """List the runs in the database, in the order they were started."""
    import dataclasses

    from algolen.store import Store

    with Store.open(db) as store:
        every = store.runs(task, pe, status)
        if not every:
            _complain(store, task, pe, status)
    found = [run for run in every if run.trial == trials]
    if not found:
        raise _other_seeds(db, trials, len(every))
    if json:
        common.print_json([dataclasses.asdict(run) for run in found])
        return
    console = common.console()
    for part in _listing(found):
        console.print(part, highlight=False)
    if not trials and (others := len(every) - len(found)):
        console.print(f"[dim]and {others:,} trial{'s' * (others > 1)}; --trials lists them[/]", highlight=False)


def _complain(store: Store, task: str | None, pe: str | None, status: str | None) -> None:
    from algolen.errors import UserError, unknown

    stored = {
        "task": (task, store.known("task")),
        "encoding": (pe, [*store.known("pe"), *store.known("expansion")]),
        "status": (status, store.statuses()),
    }
    for kind, (name, known) in stored.items():
        if known and name is not None and name not in known:
            raise unknown(kind, name, set(known))
    asked = " ".join(f"{kind} {name}" for kind, (name, _) in stored.items() if name is not None)
    raise UserError(f"{store.path} holds no runs {f'with {asked}' if asked else 'yet; `algolen train` adds some'}")


def _other_seeds(db: Path, trials: bool, found: int) -> UserError:
    from algolen.errors import UserError

    if trials:
        return UserError(f"{db} holds no such trials, which have seeds from 100 up")
    return UserError(f"all {found:,} such runs in {db} are trials; --trials lists them")


def _listing(found: Sequence[RunRow]) -> Iterator[RenderableType]:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    width = _telling_width([run.config_hash for run in found])
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    shipped = any(run.shipped for run in found)
    columns = ["config-seed", "task", "encoding", "status", "steps", "seconds", "started"]
    for name in columns + ["shipped"] * shipped:
        table.add_column(name, justify="right" if name in ("steps", "seconds") else "left", no_wrap=name != "encoding")
    for run in found:
        steps = f"{run.step:,}" if run.step == run.steps else f"{run.step:,}/{run.steps:,}"
        status = Text(run.status, STYLES.get(run.status, ""))
        seconds = "" if run.seconds is None else f"{run.seconds:,.0f}"
        started = (run.started_at or "")[5:16].replace("T", " ")
        name = f"{run.config_hash[:width]}-{run.seed}"
        mark = ["yes" if run.shipped else ""] * shipped
        table.add_row(name, Text(run.task), Text(run.pe), status, steps, seconds, started, *mark)
    yield table
    for run in found:
        if run.error:
            first_line = run.error.strip().partition("\n")[0]
            yield Text(f"{run.config_hash[:width]}-{run.seed} {run.status}: {first_line}", STYLES.get(run.status, ""))


def _telling_width(hashes: Sequence[str]) -> int:
    """How many characters tell the configs apart; `algolen show` takes that much."""
    different = set(hashes)
    return next((width for width in range(6, 16) if len({h[:width] for h in different}) == len(different)), 16)

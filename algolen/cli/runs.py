"""`algolen runs`: what was trained, is being trained, or came to grief."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from algolen.cli import common

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from algolen.store import RunRow, Store

STYLES = {"done": "green", "running": "cyan", "failed": "red", "diverged": "magenta", "interrupted": "yellow"}


def runs(
    task: Annotated[str | None, typer.Option(help="Only runs of this task.")] = None,
    pe: Annotated[str | None, typer.Option(help="Only runs with this encoding, as typed or as it expands.")] = None,
    status: Annotated[str | None, typer.Option(help="Only runs with this status: done, running, failed, …")] = None,
    json: common.AsJson = False,
    db: common.Database = common.DATABASE,
) -> None:
    """List the runs in the database, in the order they were started."""
    import dataclasses

    from algolen.store import Store

    with Store.open(db) as store:
        found = store.runs(task, pe, status)
        if not found:
            _complain(store, task, pe, status)
    if json:
        common.print_json([dataclasses.asdict(run) for run in found])
        return
    console = common.console()
    for part in _listing(found):
        console.print(part, highlight=False)


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


def _listing(found: Sequence[RunRow]) -> Iterator[RenderableType]:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    width = _telling_width([run.config_hash for run in found])
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for name in ("config-seed", "task", "encoding", "status", "steps", "seconds", "started"):
        table.add_column(name, justify="right" if name in ("steps", "seconds") else "left", no_wrap=name != "encoding")
    for run in found:
        steps = f"{run.step:,}" if run.step == run.steps else f"{run.step:,}/{run.steps:,}"
        status = Text(run.status, STYLES.get(run.status, ""))
        seconds = "" if run.seconds is None else f"{run.seconds:,.0f}"
        started = (run.started_at or "")[5:16].replace("T", " ")
        name = f"{run.config_hash[:width]}-{run.seed}"
        table.add_row(name, Text(run.task), Text(run.pe), status, steps, seconds, started)
    yield table
    for run in found:
        if run.error:
            first_line = run.error.strip().partition("\n")[0]
            yield Text(f"{run.config_hash[:width]}-{run.seed} {run.status}: {first_line}", STYLES.get(run.status, ""))


def _telling_width(hashes: Sequence[str]) -> int:
    """How many characters tell the configs apart; `algolen show` takes that much."""
    different = set(hashes)
    return next((width for width in range(6, 16) if len({h[:width] for h in different}) == len(different)), 16)

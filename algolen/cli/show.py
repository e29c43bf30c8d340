"""`algolen show`: everything that is known about one run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Database

if TYPE_CHECKING:
    from rich.console import Console

    from algolen.store import CurvePoint, RunRow, Store, StratumRow

BARS = "▁▂▃▄▅▆▇█"


def show(
    run: Annotated[str, typer.Argument(help="The run's id, or its first characters; `algolen runs` lists them.")],
    toml: Annotated[bool, typer.Option("--toml", help="Only what `train --config` needs to make it again.")] = False,
    db: Database = common.DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show a run: its configuration, how training went, its counts by length and stratum, its files."""
    from algolen.config import RunConfig
    from algolen.store import Store

    with Store.open(db) as store:
        row = store.run(run)
        config = RunConfig.from_dict(json.loads(store.config(row.config_hash).config_json))
        if toml:
            print(_sweep_toml(store, row) + config.to_toml(), end="")
        elif as_json:
            common.print_json(_as_dict(store, row))
        else:
            _print(common.console(), store, row, config)


def _as_dict(store: Store, row: RunRow) -> dict[str, Any]:
    return {
        "run": asdict(row),
        "config": json.loads(store.config(row.config_hash).config_json),
        "counts": [_flat(stratum) for stratum in store.strata(row.id)],
        "loss": [[point.step, _finite(point.value)] for point in store.curve(row.id, "loss")],
        "artifacts": [asdict(artifact) for artifact in store.artifacts(row.id)],
    }


def _finite(value: float) -> float | str:
    return value if value - value == 0 else str(value)


def _flat(stratum: StratumRow) -> dict[str, Any]:
    evaluation = asdict(stratum.evaluation)
    return {**evaluation, "step": stratum.step, **asdict(stratum.key), **asdict(stratum.count)}


def _sweep_toml(store: Store, row: RunRow) -> str:
    """The seed, and the sweep that most of a run's counts are from, so that the file makes them again."""
    from algolen import lengths

    lines = [f'seeds = "{row.seed}"']
    tested = [s for s in store.strata(row.id) if s.evaluation.checkpoint != "training"]
    if tested:
        # A training sweeps with an axis or without one; `eval` may have added others.
        (sweep, axis), _ = Counter((s.evaluation, s.key.axis) for s in tested).most_common(1)[0]
        keys = [s.key for s in tested if (s.evaluation, s.key.axis) == (sweep, axis)]
        lines += [
            f'test_lengths = "{lengths.show(sorted({key.length for key in keys}))}"',
            f'test_sets = "{",".join(dict.fromkeys(key.test_set for key in keys))}"',
            f"examples = {sweep.examples}",
            f"test_seed = {sweep.test_seed}",
        ]
        if axis:
            values = dict.fromkeys(f"{key.axis_value:g}" for key in keys)
            lines.append(f'axis = "{axis}={",".join(values)}"')
        if sweep.positions in ("drawn", "even"):
            lines.append(f'positions = "{sweep.positions}"')
    return "\n".join(lines) + "\n"


def _print(console: Console, store: Store, row: RunRow, config: Any) -> None:
    from rich.console import Group

    written = row.pe if row.pe == row.expansion else f"{row.pe} (= {row.expansion})"
    console.print(
        f"[bold]run {row.id}[/bold]  {row.task} with {written}, seed {row.seed}: {row.status}", soft_wrap=True
    )
    if row.error:
        console.print(f"reason: {row.error.splitlines()[0]}", style="red", markup=False, soft_wrap=True)
    seconds = "" if row.seconds is None else f" in {row.seconds:,.0f} s of training"
    greedy = "equals greedy decoding" if row.greedy else "greedy: no, exact match is teacher-forced only"
    console.print(
        f"step {row.step:,} of {row.steps:,}{seconds}, attempt {row.attempt}; exact match {greedy}", soft_wrap=True
    )
    shipped = "; shipped with algolen" if row.shipped else ""
    console.print(f"started {row.started_at or '–'}, finished {row.finished_at or '–'}{shipped}", style="dim")
    console.print("\nconfiguration", style="bold")
    console.print(config.to_toml().rstrip(), markup=False, soft_wrap=True)
    loss = store.curve(row.id, "loss")
    if loss:
        console.print("\ntraining loss", style="bold")
        console.print(f"{_spark(loss, min(60, console.width - 24))}  {loss[0].value:.3g} → {loss[-1].value:.3g}")
    tables = _count_tables(store.strata(row.id))
    if tables:
        console.print("\ncounts", style="bold")
        console.print(Group(*tables))
    artifacts = store.artifacts(row.id)
    if artifacts:
        console.print("\nfiles", style="bold")
    for artifact in artifacts:
        here = "" if (store.path.parent / artifact.path).exists() else "  [red](not there)[/red]"
        console.print(f"{artifact.kind:<16} step {artifact.step:,}  {artifact.path}{here}", soft_wrap=True)


def _count_tables(strata: list[StratumRow]) -> list[Any]:
    """A table for each way of testing and test set: lengths down, the whole set and then its strata across."""
    from rich.table import Table

    tables = []
    for evaluation, test_set in dict.fromkeys((s.evaluation, s.key.test_set) for s in strata):
        own = [s for s in strata if (s.evaluation, s.key.test_set) == (evaluation, test_set)]
        seed = f"test seed {evaluation.test_seed}, {evaluation.checkpoint} checkpoint, step {own[0].step:,}"
        purpose = "" if evaluation.purpose == "report" else f"{evaluation.purpose}: "
        table = Table(title=f"{purpose}{test_set} ({seed})", title_justify="left", box=None, header_style="bold")
        names = sorted({s.count.stratum for s in own} - {""})
        table.add_column("length", justify="right")
        table.add_column("exact", justify="right")
        for name in names:
            table.add_column(name, justify="right", overflow="fold")
        for key in dict.fromkeys(s.key for s in own):
            at = {s.count.stratum: s.count for s in own if s.key == key}
            exact, units = sum(c.exact for c in at.values()), sum(c.units for c in at.values())
            cells = [f"{at[name].exact:,}/{at[name].units:,}" if name in at else "" for name in names]
            beside = f" {key.axis}={key.axis_value:g}" if key.axis else ""
            table.add_row(f"{key.length:,}{beside}", f"{exact:,}/{units:,}", *cells)
        tables.append(table)
    return tables


def _spark(points: list[CurvePoint], width: int) -> str:
    """A line of bars, on a logarithmic scale; × where the loss was not finite."""
    import math

    chosen = [points[index * len(points) // width] for index in range(width)] if len(points) > width else points
    logs = [math.log(max(p.value, 1e-12)) if p.value - p.value == 0 else None for p in chosen]
    finite = [value for value in logs if value is not None]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join("×" if value is None else BARS[round((value - low) * scale)] for value in logs)

"""`algolen compare`: whether one database reproduces another, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.cli import common

if TYPE_CHECKING:
    from rich.console import Console

    from algolen.report.differences import Options
    from algolen.reproduction import Line, Pair, Reproduction, Verdict

SHOWN = 10
"""How many of the points that differ are shown."""

ORDER: tuple[Verdict, ...] = ("equal", "within", "different")
"""The verdicts as columns."""


def compare(
    first: Annotated[Path, typer.Argument(help="A database, called A.")],
    second: Annotated[Path, typer.Argument(help="Another, called B.")],
    trials: common.Trials = False,
    as_json: common.AsJson = False,
) -> int:
    """Compare the runs that two databases have in common: equal counts, within their intervals, or different.

    Exits with 1 if a run is not as it should be or there is nothing to compare. Neither file is written to.
    """
    from algolen.report.differences import task_settings
    from algolen.reproduction import by_config, reproduction
    from algolen.store import Store

    with Store.open(first, read_only=True) as one, Store.open(second, read_only=True) as other:
        found = reproduction(one, other, trials)
        hashes = {line.run.config_hash for line in by_config(found)}
        settings = task_settings((one.configs(hashes) | other.configs(hashes)).values())
    if as_json:
        common.print_json(_as_dict(found, settings))
    else:
        _print(common.console(), found, settings, first, second)
    return 0 if found.well else 1


def _as_dict(found: Reproduction, settings: Mapping[str, Options]) -> dict[str, Any]:
    from algolen.reproduction import by_config

    return {
        "well": found.well,
        "configs": [
            {
                "config": line.run.config_hash,
                "task": line.run.task,
                "settings": settings[line.run.config_hash],
                "pe": line.run.pe,
                **line.counts,
                "only_first": line.only_first,
                "only_second": line.only_second,
                "well": line.well,
            }
            for line in by_config(found)
        ],
        "runs": [
            {"run": one.first.id, "verdict": one.verdict, "same_machine": one.same_machine, "well": one.well}
            for one in found.compared
        ],
        "differences": [_difference(pair) for pair in found.differences],
    }


def _difference(pair: Pair) -> dict[str, Any]:
    return {
        "run": pair.run.id,
        "pe": pair.run.pe,
        "checkpoint": pair.evaluation.checkpoint,
        **asdict(pair.key),
        "first": {"exact": pair.first[0], "units": pair.first[1]},
        "second": {"exact": pair.second[0], "units": pair.second[1]},
        "difference": pair.difference,
        "verdict": pair.verdict,
        "same_test_set": pair.same_test_set,
    }


def _print(console: Console, found: Reproduction, settings: Mapping[str, Options], first: Path, second: Path) -> None:
    from rich import box
    from rich.table import Table

    from algolen.reproduction import TEST, by_config

    console.print(f"A is {first}, B is {second}\n", markup=False, soft_wrap=True)
    # What only one of them has is no fault: a part of the studies may have been reproduced.
    lines = [line for line in by_config(found) if any(line.counts.values())]
    longest = max((len(line.run.pe) for line in lines), default=0)
    for title, own in _grouped(lines, settings).items():
        console.print(title, style="bold", markup=False, highlight=False)
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        table.add_column("config")
        table.add_column("encoding", overflow="fold", min_width=min(longest, 20))
        for name in ("equal", "within", "different", "only A", "only B"):
            table.add_column(name, justify="right", no_wrap=True)
        for line in own:
            counts = (*(line.counts[name] for name in ORDER), line.only_first, line.only_second)
            cells = [f"{count:,}" if count else "" for count in counts]
            table.add_row(line.run.config_hash[:6], line.run.pe, *cells, style="" if line.well else "red")
        console.print(table)
        console.print()
    for name, runs in (("A", found.only_first), ("B", found.only_second)):
        if runs:
            console.print(
                f"only in {name}: {len(runs):,} finished runs of {len({run.config_hash for run in runs})} configs"
            )
    for pair in found.differences[:SHOWN]:
        console.print(_said(pair), markup=False, soft_wrap=True)
    if (more := len(found.differences) - SHOWN) > 0:
        console.print(f"… and {more:,} points more")
    for one in found.compared:
        if one.first.status != one.second.status:
            console.print(f"{one.first.id}: {one.first.status} in A, {one.second.status} in B", soft_wrap=True)
    _conclude(console, found, TEST)


def _grouped(lines: Sequence[Line], settings: Mapping[str, Options]) -> dict[str, list[Line]]:
    """The lines by their task and the options that tell it from the same task elsewhere."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        own = settings[line.run.config_hash]
        title = " · ".join((line.run.task, *(f"{name}={value}" for name, value in own.items())))
        found.setdefault(title, []).append(line)
    return found


def _said(pair: Pair) -> str:
    (exact, units), (other_exact, other_units) = pair.first, pair.second
    of = f"{exact:,}/{units:,} in A, {other_exact:,}/{other_units:,} in B"
    sets = "" if pair.same_test_set else ", and the test sets are not the same"
    return f"{pair.run.pe} {pair.run.id}, {pair.evaluation.checkpoint}, {pair.key}: {of}: {pair.verdict}{sets}"


def _conclude(console: Console, found: Reproduction, test: str) -> None:
    same = sum(one.same_machine for one in found.compared)
    bad = sum(not one.well for one in found.compared)
    others = len(found.compared) - same
    console.print(f"{test[0].upper()}{test[1:]}", style="dim", highlight=False)
    if not found.compared:
        console.print("Nothing to compare: no finished run with a test in common is in both.", style="red")
        return
    machines = f"{same:,} of them from the same kind of machine, {others:,} from another"
    verdict = "all as they should be" if not bad else f"{bad:,} not as they should be"
    console.print(f"{len(found.compared):,} runs in both, {machines}: {verdict}.", style="red" if bad else "green")

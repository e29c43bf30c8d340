"""`algolen tasks`: what can be learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Plugins
from algolen.cli.describe import first_paragraph, nearest_length, print_options

if TYPE_CHECKING:
    from algolen.task import Task


def tasks(
    name: Annotated[str, typer.Argument(help="A task to describe in full.")] = "",
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks, or describe one: options, layout, test sets, baselines."""
    found = common.registry(plugin)
    wanted = [found.task(name)] if name else [found.tasks[known] for known in sorted(found.tasks)]
    described = [describe(cls) for cls in wanted]
    if as_json:
        common.print_json(described[0] if name else described)
    elif name:
        _print_one(described[0])
    else:
        _print_table(described)


def describe(cls: type[Task]) -> dict[str, Any]:
    """What is known about a task, at its default options, as plain values."""
    from dataclasses import asdict

    from algolen import options

    task = options.read(cls, {}, cls.name)
    example = nearest_length(task, 10)
    return {
        "name": cls.name,
        "version": cls.version,
        "summary": first_paragraph(cls),
        "source": cls.source,
        "layout": task.layout.value,
        "vocabulary": list(task.vocabulary),
        "structure": sorted(task.structures),
        "axes": list(cls.axes),
        "shortest": task.smallest_length,
        "tape_length_at_10": task.tape_length(example),
        "chance_at_10": task.chance(example),
        "input_blind_at_10": task.input_blind(example),
        "test_sets": dict(cls.test_sets),
        "options": [asdict(option) for option in options.describe(cls)],
    }


def _print_table(described: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("task", "layout", "structure", "axes", "what it asks"):
        table.add_column(column, overflow="fold")
    for task in described:
        row = (task["name"], task["layout"], ", ".join(task["structure"]), ", ".join(task["axes"]), task["summary"])
        table.add_row(*row)
    common.console().print(table)


def _print_one(task: dict[str, Any]) -> None:
    console = common.console()
    console.print(f"[bold]{task['name']}[/bold]  version {task['version']}  {task['source']}")
    console.print(task["summary"])
    facts = {
        "layout": task["layout"],
        "symbols": " ".join(task["vocabulary"]),
        "structure": ", ".join(task["structure"]) or "none",
        "axes": ", ".join(task["axes"]) or "none",
        "at length 10": f"tape of {task['tape_length_at_10']} tokens, chance {task['chance_at_10']:.1e}, "
        f"best input-blind answer {task['input_blind_at_10']:.1e}",
    }
    for name, text in facts.items():
        console.print(f"  {name:<13} {text}", markup=False)
    for name, text in task["test_sets"].items():
        console.print(f"  test set      {name}: {text}", markup=False)
    print_options(console, task["name"], task["options"])

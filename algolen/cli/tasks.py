"""`algolen tasks`: what can be learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Plugins
from algolen.cli.describe import (
    by_pairing,
    by_recipe,
    first_paragraph,
    first_source,
    greedy_facts,
    print_facts,
    print_options,
    print_rows,
    print_wrapped,
)

EXAMPLES = 4096
"""How many examples are looked at to say how much of a task is scored."""

if TYPE_CHECKING:
    from algolen.registry import Registry
    from algolen.task import Task


def tasks(
    name: Annotated[str, typer.Argument(help="A task to describe in full.")] = "",
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks, or describe one: options, layout, test sets, baselines."""
    found = common.registry(plugin)
    wanted = [found.task(name)] if name else [found.tasks[known] for known in sorted(found.tasks)]
    described = [describe(cls, found) for cls in wanted]
    if as_json:
        common.print_json(described[0] if name else described)
    elif name:
        _print_one(described[0])
    else:
        _print_table(described)


def describe(cls: type[Task], registry: Registry) -> dict[str, Any]:
    """What is known about a task, at its default options, as plain values."""
    from dataclasses import asdict

    from algolen import options, presets
    from algolen.pairing import TYPICAL, has_length, nearest_length, pairings

    task = options.read(cls, {}, cls.name)
    example = nearest_length(task, TYPICAL)
    units, tokens = _scored(task, example)
    first = task.smallest_length
    return {
        "name": cls.name,
        "version": cls.version,
        "summary": first_paragraph(cls),
        "source": cls.source,
        "layout": task.layout.value,
        "vocabulary": list(task.vocabulary),
        "structure": sorted(task.structures),
        "axes": list(cls.axes),
        "shortest": first,
        "first_lengths": [length for length in range(first, first + 100) if has_length(task, length)][:5],
        "example_length": example,
        "tape_length_at_10": task.tape_length(example),
        "units_at_10": units,
        "tokens_a_unit_at_10": tokens,
        "chance_at_10": task.chance(example),
        "input_blind_at_10": task.input_blind(example),
        "test_sets": dict(cls.test_sets),
        "encodings": by_pairing(pairings(registry, task=cls.name), "encoding"),
        "recipes": by_recipe(presets.for_task(cls.name)),
        "options": [asdict(option) for option in options.describe(cls)],
    }


def _scored(task: Task, length: int) -> tuple[list[int], list[int]]:
    """The fewest and most units an example has, and tokens a unit has, as far as some examples show."""
    import torch

    from algolen.random import Random

    index_B = torch.arange(EXAMPLES)
    batch = task.sample(torch.full((EXAMPLES,), length), Random.of("listing", examples_B=index_B))
    units_B = batch.unit_BT.amax(dim=1) + 1
    of_its_own_BT = batch.unit_BT + index_B[:, None] * int(units_B.max())
    tokens = torch.bincount(of_its_own_BT[batch.scored_BT])
    tokens = tokens[tokens > 0]
    return [int(units_B.min()), int(units_B.max())], [int(tokens.min()), int(tokens.max())]


def _print_table(described: list[dict[str, Any]]) -> None:
    console = common.console()
    print_rows(
        console,
        ["task", "layout", "axes", "shortest", "units", "chance", "input-blind"],
        [
            [
                task["name"],
                task["layout"],
                ", ".join(task["axes"]),
                str(task["shortest"]),
                _range(task["units_at_10"]),
                f"{task['chance_at_10']:.1g}",
                f"{task['input_blind_at_10']:.1g}",
            ]
            for task in described
        ],
        [
            [
                task["summary"],
                f"structure: {', '.join(task['structure']) or 'none'}; test sets: {', '.join(task['test_sets'])}",
                first_source(task["source"]),
            ]
            for task in described
        ],
        right="shortest, units, chance, input-blind",
    )
    console.print()
    for note in (
        "units: of an example of length 10, scored each by itself.",
        "chance, input-blind: exact match at length 10 of a guess and of the best answer that ignores the input.",
    ):
        print_wrapped(console, note, style="dim")


def _print_one(task: dict[str, Any]) -> None:
    console = common.console()
    console.print(f"[bold]{task['name']}[/bold]  version {task['version']}", soft_wrap=True)
    print_wrapped(console, task["source"])
    print_wrapped(console, task["summary"])
    shown = ", ".join(map(str, task["first_lengths"][:4])) + (", …" if len(task["first_lengths"]) > 4 else "")
    units, tokens = _range(task["units_at_10"]), _range(task["tokens_a_unit_at_10"])
    seen = f" (in {EXAMPLES:,} examples)" if "–" in units + tokens else ""
    print_facts(
        console,
        {
            "layout": task["layout"],
            "symbols": " ".join(task["vocabulary"]),
            "structure": ", ".join(task["structure"]) or "none",
            "axes": ", ".join(task["axes"]) or "none",
            "lengths": shown,
            f"at length {task['example_length']}": f"tape of {task['tape_length_at_10']} tokens, chance "
            f"{task['chance_at_10']:.1e}, best input-blind answer {task['input_blind_at_10']:.1e}",
            "scored": f"{units} unit{'s' * (units != '1')} an example, of {tokens} token{'s' * (tokens != '1')}{seen}",
            "test sets": [f"{name}: {text}" for name, text in task["test_sets"].items()],
            **greedy_facts(task["encodings"], "encoding"),
            "recipes": [f"{one['name']}: with {', '.join(one['encodings'])}" for one in task["recipes"]],
        },
    )
    print_options(console, task["name"], task["options"])


def _range(ends: list[int]) -> str:
    first, last = ends
    return str(first) if first == last else f"{first}–{last}"

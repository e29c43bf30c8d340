"""`algolen sample`: examples of a task as the model sees them, with targets, masks and position ids aligned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Plugins
from algolen.cli.describe import nearest_length
from algolen.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from algolen.batch import Batch
    from algolen.encodings.expression import Expression
    from algolen.task import Task


def sample(
    task: Annotated[str, typer.Argument(help="The task.")],
    length: Annotated[
        int | None, typer.Option("--length", help="The nominal length; unset: 5, or the next one that the task has.")
    ] = None,
    pe: Annotated[str, typer.Option("--pe", help="Show the position ids of these encodings.")] = "",
    examples: Annotated[int, typer.Option("--examples", min=1, max=100_000, help="How many examples.")] = 2,
    test_set: Annotated[str, typer.Option("--test-set", help="The kind of test set.")] = "random",
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of the examples.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="section.option=value, as in addition.padded=false; repeatable.")
    ] = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Show examples: what is read, what is to be predicted where, and which position ids go with it."""
    import torch

    from algolen import config as configuration
    from algolen import experiment as experiments
    from algolen import lengths
    from algolen.encodings.base import Shape
    from algolen.encodings.expression import parse
    from algolen.evaluation.test_sets import TestSet, check_kinds
    from algolen.initialisation import Initialiser
    from algolen.phase import Phase

    registry = common.registry(plugin)
    sections = configuration.settings(settings or [])
    made = experiments.make_task(task, sections, registry)
    check_kinds(made, [test_set])
    length = nearest_length(made, 5) if length is None else length
    if not made.smallest_length <= length <= lengths.LARGEST:
        raise UserError(
            f"--length {length}: lengths of {made.name} go from {made.smallest_length} to {lengths.LARGEST:,}"
        )
    experiments.check_length(made, length, "--length")
    expression = parse(pe or "nope", registry.encoding, sections)
    experiments.check_sections(sections, made, expression, registry)
    expression.check(made, (length,), made.layout.causal)
    source = TestSet(made, test_set, length, examples, seed)
    cpu = torch.device("cpu")
    batch, positions = source.batch(0, examples, cpu), source.positions(0, examples, cpu)
    streams: dict[str, Tensor] = {}
    if pe:
        built = expression.build(Shape(layers=1, width=8, heads=1), Initialiser(0))
        mapped = any(member.cls.maps_ids for member in expression.members)
        streams = {"ids at test" if mapped else "ids": built.map_ids(batch, positions, Phase.TEST)}
        if mapped:
            streams["ids in training"] = built.map_ids(batch, positions, Phase.TRAINING)
    shown = [_example(made, test_set, batch, streams, row) for row in range(examples)]
    if as_json:
        common.print_json(shown)
    else:
        _print(shown, made, expression if pe else None)


def _example(task: Task, test_set: str, batch: Batch, streams: dict[str, Tensor], row: int) -> dict[str, Any]:
    tape = int(batch.valid_BT[row].sum())
    scored = batch.scored_BT[row, :tape].tolist()
    trained = batch.trained_BT[row, :tape].tolist()
    targets = task.decode(batch.targets_BT[row, :tape].tolist())
    strata = sorted(set(batch.stratum_BT[row, :tape][batch.scored_BT[row, :tape]].tolist()))
    return {
        "input": task.decode(batch.tokens_BT[row, :tape].tolist()),
        "target": [
            target if used or kept else None for target, used, kept in zip(targets, trained, scored, strict=True)
        ],
        "trained": trained,
        "scored": scored,
        "unit": batch.unit_BT[row, :tape].tolist(),
        "strata": [name for stratum in strata if (name := task.stratum_name(test_set, stratum))],
        **{name: _ids(ids_BTA[row, :tape]) for name, ids_BTA in streams.items()},
    }


def _ids(ids_TA: Tensor) -> list[Any]:
    ids: list[Any] = ids_TA.squeeze(-1).tolist()
    return ids


def _print(shown: list[dict[str, Any]], task: Task, expression: Expression | None) -> None:
    console = common.console()
    if expression is not None:
        console.print(f"{task.name} with {expression.expansion}", style="bold")
    for number, example in enumerate(shown):
        strata = f"  ({', '.join(example['strata'])})" if example["strata"] else ""
        console.print(f"example {number}{strata}", style="dim")
        rows: dict[str, list[Any]] = {"input": example["input"], "target": example["target"]}
        rows["scored"] = ["^" if scored else "" for scored in example["scored"]]
        if example["trained"] != example["scored"]:
            rows["trained"] = ["^" if trained else "" for trained in example["trained"]]
        rows.update({name: ids for name, ids in example.items() if name.startswith("ids")})
        _print_aligned(console, rows)


def _print_aligned(console: Any, rows: dict[str, list[Any]]) -> None:
    """Rows under each other, cut into blocks where the terminal is too narrow."""
    texts = {name: ["" if cell is None else _cell(cell) for cell in cells] for name, cells in rows.items()}
    margin = max(map(len, texts)) + 2
    widths = [max(len(cells[place]) for cells in texts.values()) + 1 for place in range(len(texts["input"]))]
    start = 0
    while start < len(widths):
        stop, room = start, console.width - margin
        while stop < len(widths) and (room := room - widths[stop]) >= 0:
            stop += 1
        stop = max(stop, start + 1)
        for name, cells in texts.items():
            line = "".join(cells[place].rjust(widths[place]) for place in range(start, stop))
            console.print(f"{name:<{margin}}{line}".rstrip(), markup=False, soft_wrap=True)
        console.print()
        start = stop


def _cell(cell: Any) -> str:
    return ",".join(map(str, cell)) if isinstance(cell, list) else str(cell)

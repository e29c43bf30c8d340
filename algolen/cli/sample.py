"""`algolen sample`: examples of tasks as the model sees them, with targets, masks and position ids aligned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Plugins
from algolen.cli.describe import print_aligned, print_wrapped
from algolen.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console
    from torch import Tensor

    from algolen.batch import Batch
    from algolen.config import Sections
    from algolen.encodings.expression import Expression
    from algolen.evaluation.test_sets import TestSet
    from algolen.random import Random
    from algolen.registry import Registry
    from algolen.task import Task


@dataclass(frozen=True)
class Asked:
    """One of the tasks asked for: what to show of it, and with which encodings, if any."""

    source: TestSet
    pe: Expression | None

    @property
    def heading(self) -> str:
        kind = "" if self.source.kind == "random" else f" (test set {self.source.kind})"
        encodings = "" if self.pe is None else f" with {self.pe.expansion}"
        return f"{self.source.task.name} of length {self.source.length:,}{kind}{encodings}"

    @property
    def not_greedy(self) -> str | None:
        return None if self.pe is None else self.pe.not_greedy(self.source.task)


def sample(
    tasks: Annotated[list[str], typer.Argument(help="The task, or several.", metavar="TASK")],
    length: Annotated[
        int | None, typer.Option("--length", help="The nominal length; unset: 5, or the next one that a task has.")
    ] = None,
    pe: Annotated[str, typer.Option("--pe", help="Show what these encodings are given for every token.")] = "",
    examples: Annotated[
        int, typer.Option("--examples", min=1, max=100_000, help="How many examples of each task.")
    ] = 2,
    test_set: Annotated[str, typer.Option("--test-set", help="The kind of test set.")] = "random",
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of the examples.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="section.option=value, as in addition.padded=false; repeatable.")
    ] = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """Show examples: what is read, what is to be predicted where, and which position ids go with it."""
    from algolen import config as configuration
    from algolen.evaluation.test_sets import TestSet

    registry = common.registry(plugin)
    sections = configuration.settings(settings or [])
    asked = []
    for name in dict.fromkeys(tasks):
        # What is set for another of the tasks is not without effect.
        own = {section: options for section, options in sections.items() if section == name or section not in tasks}
        made, chosen, expression = _check(name, own, pe, length, test_set, registry)
        asked.append(Asked(TestSet(made, test_set, chosen, examples, seed), expression if pe else None))
    drawn = [_examples(one) for one in asked]
    if as_json:
        common.print_json([example for shown in drawn for example in shown])
        return
    console = common.console()
    for one, shown in zip(asked, drawn, strict=True):
        _print(console, one, shown)


def _check(
    name: str, sections: Sections, pe: str, length: int | None, test_set: str, registry: Registry
) -> tuple[Task, int, Expression]:
    """The task, the length and the encodings, where they go together."""
    from algolen import experiment as experiments
    from algolen import lengths
    from algolen.encodings.expression import parse
    from algolen.evaluation.test_sets import check_kinds
    from algolen.pairing import nearest_length

    task = experiments.make_task(name, sections, registry)
    check_kinds(task, [test_set])
    length = nearest_length(task, 5) if length is None else length
    if not task.smallest_length <= length <= lengths.LARGEST:
        raise UserError(
            f"--length {length}: lengths of {task.name} go from {task.smallest_length} to {lengths.LARGEST:,}"
        )
    experiments.check_length(task, length, "--length")
    expression = parse(pe or "nope", registry.encoding, sections)
    experiments.check_sections(sections, task, expression, registry)
    expression.check(task, (length,), task.layout.causal)
    return task, length, expression


def _examples(asked: Asked) -> list[dict[str, Any]]:
    """The examples, as plain values."""
    import torch

    source, cpu = asked.source, torch.device("cpu")
    batch = source.batch(0, source.examples, cpu)
    streams = {} if asked.pe is None else _streams(asked.pe, batch, source.positions(0, source.examples, cpu))
    return [_example(asked, batch, streams, row) for row in range(source.examples)]


def _streams(pe: Expression, batch: Batch, positions: Random) -> dict[str, Tensor]:
    """What encodings are given for every token, (B, T, A), by the name of its row."""
    import torch

    from algolen.encodings.base import Shape
    from algolen.initialisation import Initialiser
    from algolen.phase import Phase

    built = pe.build(Shape(layers=1, width=8, heads=1), Initialiser(0))
    test, even = (built.streams(built.draw(batch, positions, phase)) for phase in (Phase.TEST, Phase.EVEN))
    training = built.streams(built.draw(batch, positions.fold("training"), Phase.TRAINING))
    found = {}
    for name in test:
        if name == "ids" and not any(member.cls.maps_ids for member in pe.members):
            found["sequence"] = test[name]
            continue
        found[f"{name} at test"] = test[name]
        if not torch.equal(even[name], test[name]):
            found[f"{name} at test, even"] = even[name]
        found[f"{name} in training"] = training[name]
    return found


def _example(asked: Asked, batch: Batch, streams: dict[str, Tensor], row: int) -> dict[str, Any]:
    source, task = asked.source, asked.source.task
    tape = int(batch.valid_BT[row].sum())
    scored, trained, unit, stratum = (
        tensor_BT[row, :tape].tolist()
        for tensor_BT in (batch.scored_BT, batch.trained_BT, batch.unit_BT, batch.stratum_BT)
    )
    targets = task.decode(batch.targets_BT[row, :tape].tolist())
    strata = dict(sorted(zip(unit, stratum, strict=True)))
    return {
        "task": task.name,
        "length": source.length,
        "test_set": source.kind,
        "example": row,
        "input": task.decode(batch.tokens_BT[row, :tape].tolist()),
        "target": [
            target if used or kept else None for target, used, kept in zip(targets, trained, scored, strict=True)
        ],
        "trained": trained,
        "scored": scored,
        "unit": unit,
        "strata": [task.stratum_name(source.kind, own) for number, own in strata.items() if number >= 0],
        "pe": None if asked.pe is None else asked.pe.expansion,
        "not_greedy": asked.not_greedy,
        "streams": {name: _plain(stream_BTA[row, :tape]) for name, stream_BTA in streams.items()},
    }


def _plain(stream_TA: Tensor) -> list[Any]:
    plain: list[Any] = stream_TA.squeeze(-1).tolist()
    return plain


def _print(console: Console, asked: Asked, shown: list[dict[str, Any]]) -> None:
    console.print(asked.heading, style="bold", markup=False, soft_wrap=True)
    if asked.not_greedy is not None:
        print_wrapped(console, f"exact match is not greedy decoding's: {asked.not_greedy}", style="dim")
    if asked.pe is not None and not shown[0]["streams"]:
        print_wrapped(console, f"{asked.pe.expansion} looks at no position ids", style="dim")
    for example in shown:
        strata = _strata(example["strata"])
        console.print(f"example {example['example']}{f'  ({strata})' if strata else ''}", style="dim", markup=False)
        rows: dict[str, Sequence[Any]] = {"input": example["input"], "target": example["target"]}
        rows["scored"] = ["^" if scored else None for scored in example["scored"]]
        if example["trained"] != example["scored"]:
            rows["trained"] = ["^" if trained else None for trained in example["trained"]]
        if len(example["strata"]) > 1:
            rows["unit"] = [unit if unit >= 0 else None for unit in example["unit"]]
        for name, stream in example["streams"].items():
            rows.update(_axes(name, stream))
        print_aligned(console, rows)


def _strata(names: list[str]) -> str:
    """The strata of an example's units; of several, by their numbers."""
    from algolen import lengths

    if len(names) == 1:
        return names[0]
    units = {name: [unit for unit, own in enumerate(names) if own == name] for name in names if name}
    return "; ".join(
        f"{name}: {'unit' if len(own) == 1 else 'units'} {lengths.show(own)}" for name, own in units.items()
    )


def _axes(name: str, stream: list[Any]) -> dict[str, list[Any]]:
    """A row for each axis of a stream."""
    if not isinstance(stream[0], list):
        return {name: stream}
    return {f"{name}, axis {axis}": list(places) for axis, places in enumerate(zip(*stream, strict=True))}

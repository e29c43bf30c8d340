"""What `train` says before it starts: what it is about to do, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from algolen import lengths
from algolen.experiment import Experiment

if TYPE_CHECKING:
    import torch
    from rich.console import Console


@dataclass(frozen=True)
class Cost:
    """What training takes: optimiser steps, examples, tokens on tapes, floating-point operations."""

    steps: int
    examples: int
    tokens: int
    operations: float


def cost(experiment: Experiment, parameters: int, steps: int) -> Cost:
    """The cost of training one seed: 6 operations a parameter and token, and 12 a layer, width and pair of tokens."""
    config = experiment.config
    tapes = [experiment.task.tape_length(length) for length in config.train_lengths]
    examples = steps * config.train.batch
    mean_tape = sum(tapes) / len(tapes)
    mean_pairs = sum(tape**2 for tape in tapes) / len(tapes)
    pairs = 12 * config.model.layers * config.model.width * mean_pairs / (2 if experiment.causal else 1)
    return Cost(steps, examples, round(examples * mean_tape), examples * (6 * parameters * mean_tape + pairs))


def describe(
    experiment: Experiment, seeds: Sequence[int], device: torch.device, threads: int, db: Path
) -> dict[str, str]:
    """The plan, a line for each of its sides."""
    import torch

    config = experiment.config
    model = experiment.model(seeds[0], torch.device("cpu"))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    spent = cost(experiment, parameters, experiment.data(seeds[0], torch.device("cpu")).steps)
    written = config.pe if config.pe == config.expansion else f"{config.pe} (= {config.expansion})"
    test = experiment.evaluation
    greedy = experiment.pe.not_greedy(experiment.task)
    return {
        "run": f"{config.task} with {written}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        "lengths": f"trained on {lengths.show(config.train_lengths)}, tested on {lengths.show(test.test_lengths)}"
        f" ({test.examples:,} examples each: {', '.join(test.test_sets)}{_axis(experiment)})",
        "task": _options(config.task_options),
        "encoding": "; ".join(f"{name}: {_options(own)}" for name, own in config.pe_options.items() if own) or "–",
        "model": _model(experiment, parameters),
        "cost": f"{spent.steps:,} steps of {config.train.batch}: {spent.examples:,} {_freshness(experiment)}, "
        f"{spent.tokens:,} tokens, {spent.operations:.2g} operations a seed",
        "exact match": "equals greedy decoding" if greedy is None else f"greedy: no ({greedy})",
        "device": f"{device}, {threads} thread{'s' if threads > 1 else ''}",
        "kept in": f"{db} and {db.parent / 'runs' / config.hash()}-…",
    }


def announce(console: Console, plan: dict[str, str]) -> None:
    """Prints the plan."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in plan.items():
        table.add_row(name, Text(text))
    console.print(table)


def _model(experiment: Experiment, parameters: int) -> str:
    model = experiment.config.model
    layers = f"{model.layers} layer{'s' if model.layers > 1 else ''}"
    kind = "causal" if experiment.causal else "bidirectional"
    return (
        f"{layers}, width {model.width}, {model.heads} heads, {model.activation}, {model.norm} norm "
        f"{model.norm_position}, {kind}: {parameters:,} parameters"
    )


def _freshness(experiment: Experiment) -> str:
    examples = experiment.config.train.examples
    return f"draws from {examples:,} fixed examples" if examples else "fresh examples"


def _axis(experiment: Experiment) -> str:
    test = experiment.evaluation
    return f"; {test.axis} {', '.join(f'{value:g}' for value in test.axis_values)}" if test.axis else ""


def _options(options: object) -> str:
    assert hasattr(options, "items")
    return ", ".join(f"{name}={_value(value)}" for name, value in options.items()) or "–"


def _value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return str(value)

"""What `train` says before it starts: what it is about to do, and its cost."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from algolen import lengths
from algolen.evaluation.test_sets import TestSet, spread
from algolen.experiment import Experiment
from algolen.presets import Preset

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Cost:
    """What training takes: optimiser steps, examples, tokens on tapes, floating-point operations."""

    steps: int
    examples: int
    tokens: int
    operations: float


def cost(experiment: Experiment, steps: int) -> Cost:
    """The cost of training one seed, from matrix products alone, forward and backward.

    A token costs 6 operations for each weight of the matrices it passes, a pair of tokens 12 a layer and unit of width;
    in the last block, what follows attention is computed only where something is predicted. Averages over lengths.
    """
    model, train, causal = experiment.config.model, experiment.config.train, experiment.causal
    hidden = round(model.ff_ratio * model.width)
    projections = 3 * model.width**2
    after = model.width * experiment.pe.attention_heads(model.heads) * (model.width // model.heads)
    after += (3 if model.activation == "geglu" else 2) * model.width * hidden
    unembed = model.width * len(experiment.task.vocabulary)
    tokens, operations = 0.0, 0.0
    seen = spread(experiment.config.train_lengths)
    for length in seen:
        batch = TestSet(experiment.task, "random", length, 1, 0).batch(0, 1, torch.device("cpu"))
        tape = batch.tape_length
        predicted = tape - batch.predicted_from
        layers = model.layers * model.loops
        weights = tape * (layers * projections + (layers - 1) * after) + predicted * (after + unembed)
        pairs = layers * model.width * tape**2 / (2 if causal else 1)
        tokens += tape / len(seen)
        operations += (6 * weights + 12 * pairs) / len(seen)
    examples = steps * train.batch
    return Cost(steps, examples, round(examples * tokens), examples * operations)


def describe(
    experiment: Experiment, start: Preset, seeds: Sequence[int], device: torch.device, threads: int, db: Path
) -> dict[str, str | list[str]]:
    """The plan, a text for each of its sides; several where it differs from a publication."""
    config = experiment.config
    spent = cost(experiment, experiment.data(seeds[0], torch.device("cpu")).steps)
    written = config.pe if config.pe == config.expansion else f"{config.pe} (= {config.expansion})"
    test = experiment.evaluation
    greedy = experiment.pe.not_greedy(experiment.task)
    return {
        "run": f"{config.task} with {written}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        **_recipe(start),
        "lengths": f"trained on {lengths.show(config.train_lengths)}, tested on {lengths.show(test.test_lengths)}"
        f" ({test.examples:,} examples each: {', '.join(test.test_sets)}{_axis(experiment)})",
        "task": _options(config.task_options),
        "encoding": "; ".join(f"{name}: {_options(own)}" for name, own in config.pe_options.items() if own) or "–",
        "model": _model(experiment),
        "cost": f"{spent.steps:,} steps of {config.train.batch}: {spent.examples:,} {_freshness(experiment)}, "
        f"{spent.tokens:,} tokens, {spent.operations:.2g} operations a seed",
        "exact match": "equals greedy decoding" if greedy is None else f"greedy: no ({greedy})",
        "device": f"{device}, {threads} thread{'s' if threads > 1 else ''}",
        "kept in": f"{db} and {db.parent / 'runs' / config.hash()}-…",
    }


def to_json(
    experiment: Experiment, start: Preset, seeds: Sequence[int], device: torch.device, threads: int, db: Path
) -> dict[str, Any]:
    """The plan as values: the whole configuration and sweep, the runs by id, the cost of each seed."""
    config = experiment.config
    not_greedy = experiment.pe.not_greedy(experiment.task)
    return {
        "config_hash": config.hash(),
        "config": config.to_dict(),
        "evaluation": dataclasses.asdict(experiment.evaluation),
        "recipe": start.recipe
        and {
            "name": start.recipe.name,
            "source": start.recipe.source,
            "status": start.recipe.status,
            "differs": list(start.differs),
            "changed": list(start.changed),
        },
        "runs": [{"id": config.run_id(seed), "seed": seed} for seed in seeds],
        "parameters": experiment.parameters,
        "causal": experiment.causal,
        "greedy": not_greedy is None,
        "not_greedy": not_greedy,
        "cost": dataclasses.asdict(cost(experiment, experiment.data(seeds[0], torch.device("cpu")).steps)),
        "device": str(device),
        "threads": threads,
        "db": str(db),
    }


def announce(console: Console, plan: Mapping[str, str | list[str]]) -> None:
    """Prints the plan, wrapped at words, without trailing blanks where it goes into a log."""
    from rich.text import Text

    margin = max(map(len, plan)) + 2
    for name, texts in plan.items():
        for number, text in enumerate([texts] if isinstance(texts, str) else texts):
            first, *rest = textwrap.wrap(text, max(20, console.width - margin), break_on_hyphens=False)
            label = "" if number else name
            console.print(Text.assemble((label.rjust(margin - 2), "dim"), "  ", first), soft_wrap=True)
            for line in rest:
                console.print(Text(" " * margin + line), soft_wrap=True)


def _recipe(start: Preset) -> dict[str, str | list[str]]:
    """The publication that a run follows, and what is not as in it."""
    if start.recipe is None:
        return {}
    told: dict[str, str | list[str]] = {
        "recipe": start.recipe.name,
        "source": start.recipe.source,
        "status": start.recipe.status,
        "differs": list(start.differs),
    }
    return told if not start.changed else {**told, "set by you": ", ".join(start.changed)}


def _model(experiment: Experiment) -> str:
    model = experiment.config.model
    layers = f"{model.layers} layer{'s' if model.layers > 1 else ''}"
    layers += f" looped {model.loops} times" if model.loops > 1 else ""
    kind = "causal" if experiment.causal else "bidirectional"
    return (
        f"{layers}, width {model.width}, {model.heads} heads, {model.activation}, {model.norm} norm "
        f"{model.norm_position}, {kind}: {experiment.parameters:,} parameters"
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

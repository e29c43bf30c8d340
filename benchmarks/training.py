"""Our training step against the hand-written loop, and what data cost in it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from algolen import config, experiment, presets, registry
from algolen.experiment import Experiment
from algolen.model import Transformer
from algolen.phase import Phase
from algolen.training.data import TrainingData
from algolen.training.step import Stepper
from benchmarks.measuring import Bar, duel
from benchmarks.rival_loop import Loop

CPU = torch.device("cpu")
BLOCKS, STEPS = 15, 8


def plan(pe: str) -> Experiment:
    """Addition with the cpu preset: width 128, 1 layer, 4 heads, batch 64, 1–20 digits."""
    asked: config.Sections = {"": {"task": "addition", "pe": pe}}
    known = registry.load()
    return experiment.plan(config.merge(presets.choose("cpu", asked, known).sections, asked), asked, known)


def bars() -> Iterator[Bar]:
    """A step of ours over one of the rival's; data over a step."""
    for pe in ("nope", "coupling"):
        yield from _bars(pe)


def _bars(pe: str) -> Iterator[Bar]:
    planned = plan(pe)
    data, model = planned.data(0, CPU), planned.model(0, CPU)
    stepper = Stepper(model, planned.config.train, data.steps)
    positions = planned.config.pe_options["learned"]["table"] if pe == "coupling" else 0
    assert isinstance(positions, int)
    loop = Loop(len(planned.task.vocabulary), positions, data.steps)
    assert sum(p.numel() for p in loop.model.parameters()) == sum(p.numel() for p in model.parameters())
    handed = [_finished(step, data, model) for step in range((BLOCKS + 1) * STEPS)]

    def steps(block: int) -> range:
        return range(block * STEPS, (block + 1) * STEPS)

    def ours(block: int) -> None:
        for step in steps(block):
            stepper(step, data.micro_batches(step))

    def rival(block: int) -> None:
        for step in steps(block):
            loop.step(step, *handed[step])

    def generate(block: int) -> None:
        for step in steps(block):
            for micro in data.micro_batches(step):
                model.draw(micro.batch, micro.positions, Phase.TRAINING)

    against = duel(ours, rival, BLOCKS)
    tokens = sum(handed[step][0].numel() for step in range(len(handed))) / len(handed) * STEPS
    note = f"{tokens / against.first_seconds:,.0f} tokens/s, rival {tokens / against.second_seconds:,.0f}"
    yield Bar(f"training step, {pe}, over a hand-written loop", against.ratio, "×", most=1.10, note=note)
    share = duel(generate, ours, BLOCKS // 2)
    note = f"{share.first_seconds / STEPS * 1e3:.2f} ms of {share.second_seconds / STEPS * 1e3:.2f} ms"
    yield Bar(f"data of a step, {pe}, over the step", 100 * share.ratio, "%", most=5, note=note)


def _finished(step: int, data: TrainingData, model: Transformer) -> tuple[Tensor, Tensor, Tensor | None]:
    """A step's batch as the rival gets it: tokens, targets, position ids."""
    (micro,) = data.micro_batches(step)
    batch = micro.batch
    ids_BTA = model.draw(batch, micro.positions, Phase.TRAINING).encodings[0].ids_BTA
    targets_BT = torch.where(batch.trained_BT, batch.targets_BT, -100)
    return batch.tokens_BT.clone(), targets_BT, ids_BTA[..., 0].contiguous()

"""From what a user asked for to checked objects: the task, the encodings, the run's configuration, the test sets.

Everything that can be wrong with a request is found here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from algolen import lengths, options
from algolen.config import EvaluationConfig, ModelConfig, RunConfig, Sections, TopLevel, TrainConfig
from algolen.contract import check_samples
from algolen.encodings.base import Shape
from algolen.encodings.expression import Expression, parse
from algolen.errors import Refusal, UserError, unknown
from algolen.evaluation.test_sets import TestSet, check_kinds, with_axis
from algolen.model import Transformer
from algolen.phase import Phase
from algolen.registry import Registry
from algolen.task import Layout, Task
from algolen.training.data import TrainingData

DEVELOPMENT_SEED = 100
"""Test seed of the development sets, which are looked at while training and when recipes are tuned; never reported."""


@dataclass(frozen=True)
class Experiment:
    """A run's configuration and what it names, ready to be built; `evaluation` is the sweep asked for with it."""

    config: RunConfig
    task: Task
    pe: Expression
    evaluation: EvaluationConfig

    @property
    def causal(self) -> bool:
        """Whether attention looks at the past only."""
        asked = self.config.model.attention
        return self.task.layout.causal if asked == "task" else asked == "causal"

    def model(self, seed: int, device: torch.device) -> Transformer:
        """The model of a run before training."""
        train = self.config.train
        init_seed = seed if train.init_seed is None else train.init_seed
        model = Transformer(self.config.model, len(self.task.vocabulary), self.causal, self.pe, init_seed)
        return model.to(device)

    @property
    def parameters(self) -> int:
        """How many parameters the model has; none is drawn."""
        model = Transformer(self.config.model, len(self.task.vocabulary), self.causal, self.pe, seed=None)
        return sum(parameter.numel() for parameter in model.parameters())

    def data(self, seed: int, device: torch.device) -> TrainingData:
        """The training data of a run."""
        train = self.config.train
        data_seed = seed if train.data_seed is None else train.data_seed
        return TrainingData(self.task, self.config.train_lengths, train, data_seed, device)

    @property
    def steps(self) -> int:
        """Optimiser steps of a run."""
        return self.data(0, torch.device("cpu")).steps

    @property
    def phase(self) -> Phase:
        """What the sweep's forward passes are for."""
        return Phase(self.evaluation.positions)

    def test_sets(self, purpose: str = "test") -> list[TestSet]:
        """The test sets of the sweep, shortest first; with the purpose "development", as many that share no example."""
        asked = self.evaluation
        tasks = [(0.0, self.task)]
        if asked.axis:
            tasks = [(value, with_axis(self.task, asked.axis, value)) for value in asked.axis_values]
        return [
            TestSet(task, kind, length, asked.examples, asked.test_seed, asked.axis, value, purpose)
            for length in asked.test_lengths
            for kind in asked.test_sets
            for value, task in tasks
        ]


def plan(sections: Sections, user: Sections, registry: Registry) -> Experiment:
    """The experiment that `sections` describe; those of `user` (a part of them) must all be of use in it.

    Raises UserError or Refusal for anything that is not there, out of range or does not go together.
    """
    top = options.read(TopLevel, sections.get("", {}), "")
    if top.task is None:
        raise UserError(f"name a task with --task; known: {', '.join(sorted(registry.tasks))}")
    if top.pe is None:
        raise UserError("name a position encoding with --pe; `algolen encodings` lists them")
    task = make_task(top.task, sections, registry)
    pe = parse(top.pe, registry.encoding, sections)
    check_sections(user, task, pe, registry)
    model = options.read(ModelConfig, sections.get("model", {}), "model")
    train = options.read(TrainConfig, sections.get("train", {}), "train")
    if top.train_lengths is None:
        raise UserError("name the training lengths with --train-lengths, as in --train-lengths 1-20")
    train_lengths = lengths.parse(top.train_lengths, "--train-lengths")
    config = RunConfig(
        task=task.name,
        pe=pe.written,
        expansion=pe.expansion,
        train_lengths=train_lengths,
        model=model,
        train=train,
        task_options=options.identity_of(task),
        pe_options={member.cls.name: options.identity_of(member.options) for member in pe.members},
        versions={task.name: task.version, **{member.cls.name: member.cls.version for member in pe.members}},
        plugins={n: registry.plugins[n] for n in [task.name, *pe.expansion.split("+")] if n in registry.plugins},
    )
    experiment = Experiment(config, task, pe, read_sweep(top))
    check(experiment)
    return experiment


def stored(config: Mapping[str, Any], registry: Registry) -> Experiment:
    """The experiment of a configuration from the database, without a sweep.

    Raises UserError if it needs a plug-in that is not loaded or has changed, or another version of a task or encoding.
    """
    run = RunConfig.from_dict(config)
    for name, sha256 in run.plugins.items():
        if registry.plugins.get(name) != sha256:
            state = "is not loaded" if name not in registry.plugins else "has changed since"
            raise UserError(
                f"'{name}' comes from a plug-in that {state}: name its file (sha256 {sha256[:12]}…) with --plugin"
            )
    sections: Sections = {run.task: options.restored(registry.task(run.task), run.task_options)}
    for name, own in run.pe_options.items():
        sections[name] = options.restored(registry.encoding(name).Options, own)
    task = make_task(run.task, sections, registry)
    pe = parse(run.expansion, registry.encoding, sections)
    present = {task.name: task.version, **{member.cls.name: member.cls.version for member in pe.members}}
    for name, version in run.versions.items():
        if present[name] != version:
            raise UserError(f"the run was made with version {version} of {name}, this algolen has {present[name]}")
    return Experiment(run, task, replace(pe, written=run.pe), EvaluationConfig(()))


def make_task(name: str, sections: Sections, registry: Registry) -> Task:
    """The task of that name with the options of its section."""
    return options.read(registry.task(name), sections.get(name, {}), name)


def check(experiment: Experiment) -> None:
    """Raises UserError or Refusal if the experiment cannot be trained and swept."""
    task, config, evaluation = experiment.task, experiment.config, experiment.evaluation
    if task.layout is Layout.SUFFIX and not experiment.causal:
        raise Refusal(
            f"task {task.name} feeds its answer back, and with bidirectional attention the model would read it: "
            "--set model.attention=task"
        )
    if config.train.progressive and config.model.loops == 1:
        raise UserError("train.progressive trains on a part of the model's loops, and there is one: set model.loops")
    if config.train.warmup + config.train.cooldown > experiment.steps and config.train.cooldown:
        raise UserError(
            f"train.warmup={config.train.warmup} and train.cooldown={config.train.cooldown} do not fit into "
            f"{experiment.steps:,} steps"
        )
    most = config.train.progressive_most
    if most is not None and most > config.model.loops:
        raise UserError(
            f"train.progressive_most={most} limits nothing where there are {config.model.loops} loops: "
            f"--set train.progressive_most={config.model.loops}"
        )
    check_kinds(task, evaluation.test_sets)
    for length in config.train_lengths:
        check_length(task, length, "--train-lengths")
    for test_set in experiment.test_sets():
        check_length(test_set.task, test_set.length, "--test-lengths")
    for length in sorted({config.train_lengths[0], config.train_lengths[-1]}):
        check_samples(task, length)
    shape = Shape(config.model.layers, config.model.width, config.model.heads)
    experiment.pe.check(task, (*config.train_lengths, *evaluation.test_lengths), experiment.causal, shape)
    if evaluation.positions == "even" and not experiment.pe.draws_at_test:
        raise Refusal(f"{config.expansion} draws no positions at test, so --positions even would change nothing")
    for test_set in experiment.test_sets():
        if test_set.task.vocabulary != task.vocabulary:
            raise Refusal(f"--axis {evaluation.axis} would change the vocabulary of {task.name}")
        experiment.pe.check(test_set.task, (test_set.length,), experiment.causal)
    experiment.data(0, torch.device("cpu"))


def check_length(task: Task, length: int, what: str) -> None:
    """Raises UserError, naming `what` asks for it, for a nominal length that the task does not have."""
    try:
        task.check_length(length)
    except UserError as error:
        raise UserError(f"{what} asks for length {length:,}, but {error}") from None


def check_sections(user: Sections, task: Task, pe: Expression, registry: Registry) -> None:
    """Raises UserError for a section that nothing reads, so that no setting is silently without effect."""
    used = {"", "model", "train", task.name, *pe.expansion.split("+")}
    for section in user:
        if section in used:
            continue
        if section in registry.tasks or section in registry.encodings:
            raise UserError(
                f"'{section}' takes no part in task {task.name} with {pe.expansion}, so its options do nothing"
            )
        raise unknown("section", section, used - {""})


def read_sweep(top: TopLevel) -> EvaluationConfig:
    """The sweep that top-level keys (or the flags of those names) ask for."""
    if top.test_lengths is None:
        raise UserError("name the test lengths with --test-lengths, as in --test-lengths 5:40:5")
    asked: dict[str, Any] = {"test_lengths": lengths.parse(top.test_lengths, "--test-lengths")}
    if top.test_sets is not None:
        asked["test_sets"] = tuple(dict.fromkeys(kind.strip() for kind in top.test_sets.split(",")))
    if top.axis is not None:
        asked["axis"], asked["axis_values"] = parse_axis(top.axis)
    asked.update(
        {name: value for name in ("examples", "test_seed", "positions") if (value := getattr(top, name)) is not None}
    )
    return options.read(EvaluationConfig, asked, "")


def development_lengths(experiment: Experiment) -> tuple[int, ...]:
    """The lengths beyond training that are looked at while training: 1.25, 1.5 and 2 times the longest trained, where
    the task has them and as far as the encodings reach."""
    longest = experiment.config.train_lengths[-1]
    wanted = sorted({-(-longest * factor // 4) for factor in (5, 6, 8)})
    return tuple(length for length in wanted if _fits(experiment, length))


def _fits(experiment: Experiment, length: int) -> bool:
    try:
        experiment.task.check_length(length)
        experiment.pe.check(experiment.task, (length,), experiment.causal)
    except UserError:
        return False
    return True


def parse_axis(text: str) -> tuple[str, tuple[float, ...]]:
    """`operands=2,3,4` as a name and values."""
    name, equals, values = text.partition("=")
    try:
        parsed = tuple(dict.fromkeys(float(value) for value in values.split(","))) if equals else ()
    except ValueError:
        parsed = ()
    if not parsed:
        raise UserError(f"--axis '{text}' is not of the form name=value,value, as in operands=2,3")
    return name.strip(), parsed


def with_sweep(experiment: Experiment, top: TopLevel) -> Experiment:
    """The experiment with another sweep, checked."""
    swept = replace(experiment, evaluation=read_sweep(top))
    check(swept)
    return swept

"""Small things that many tests build: tasks, expressions, models, batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from algolen import options, registry
from algolen.batch import Batch
from algolen.config import ModelConfig, Sections, TrainConfig
from algolen.encodings.base import Encoding
from algolen.encodings.expression import Expression, parse
from algolen.experiment import Experiment, plan
from algolen.model import Transformer
from algolen.random import Random
from algolen.task import Task

CPU = torch.device("cpu")
REGISTRY = registry.load()


def task(name: str = "addition", **fields: Any) -> Task:
    """A task with these options."""
    return options.read(REGISTRY.task(name), fields, name)


def expression(written: str, extra: Mapping[str, type[Encoding]] = {}, **sections: dict[str, Any]) -> Expression:
    """An expression over the built-in encodings and `extra` ones."""
    return parse(written, lambda name: extra.get(name) or REGISTRY.encoding(name), sections)


def model(pe: Expression, seed: int = 0, vocabulary: int = 14, causal: bool = True, **fields: Any) -> Transformer:
    """A small model."""
    config = options.read(ModelConfig, {"layers": 2, "width": 16, "heads": 2, **fields}, "model")
    return Transformer(config, vocabulary, causal, pe, seed)


def batch(made: Task, lengths: list[int], seed: int = 0, first: int = 0) -> tuple[Batch, Random]:
    """Examples of these nominal lengths, and the draws of their positions."""
    index_B = torch.arange(first, first + len(lengths))
    content = Random.of(seed, "content", examples_B=index_B)
    return made.sample(torch.tensor(lengths), content), Random.of(seed, "positions", examples_B=index_B)


def experiment(sections: Sections | None = None, **top: str) -> Experiment:
    """A tiny experiment: addition of 1-3 digits with coupling unless told otherwise."""
    layers: Sections = {
        "": {
            "task": "addition",
            "pe": "coupling",
            "train_lengths": "1-3",
            "test_lengths": "2-5",
            "examples": 50,
            **top,
        },
        "model": {"layers": 1, "width": 16, "heads": 2},
        "train": {"steps": 12, "batch": 8, "warmup": 2, "check_every": 5},
    }
    for name, own in (sections or {}).items():
        layers.setdefault(name, {}).update(own)
    return plan(layers, layers, REGISTRY)


def train_config(**fields: Any) -> TrainConfig:
    """A training configuration with these options."""
    return options.read(TrainConfig, fields, "train")

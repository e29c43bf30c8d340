"""RunConfig: everything that decides what a training run computes, frozen, read from TOML and the command line.

Where a value comes from, later ones winning: the defaults below, the preset (see `presets`), the file of --config,
--set and the other flags. What an evaluation does (test lengths, test sets) is not part of a run: see
`EvaluationConfig`.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from algolen import lengths, options
from algolen.errors import UserError, unknown
from algolen.identity import content_hash

TRAINING_VERSION = 1
"""Raised when the same configuration would train differently than before."""

Sections = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class ModelConfig:
    """The transformer."""

    layers: Annotated[int, Field(ge=1, le=256, description="blocks")] = 2
    width: Annotated[int, Field(ge=2, le=65536, description="width of the residual stream")] = 128
    heads: Annotated[int, Field(ge=1, description="attention heads; divide the width")] = 4
    ff_ratio: Annotated[float, Field(gt=0, le=64, description="hidden width of the feed-forward over the width")] = 4.0
    norm: Annotated[Literal["rms", "layer"], Field(description="RMSNorm or LayerNorm")] = "rms"
    norm_position: Annotated[
        Literal["before", "after", "both"], Field(description="h+f(N(h)), N(h+f(h)), or h+N(f(N(h)))")
    ] = "before"
    activation: Annotated[Literal["gelu", "relu", "geglu"], Field(description="of the feed-forward")] = "gelu"
    tied: Annotated[bool, Field(description="token embeddings also unembed, logits divided by √width")] = False
    logit_multiplier: Annotated[float, Field(gt=0, description="multiplies the scaled attention logits")] = 1.0
    embedding_scale: Annotated[Literal["one", "sqrt_width"], Field(description="multiplies the token embeddings")] = (
        "one"
    )
    embedding_std: Annotated[float, Field(gt=0, description="standard deviation of token embeddings at the start")] = (
        0.02
    )
    init_std: Annotated[
        float | None, Field(gt=0, description="standard deviation of matrices at the start; none: 1/√inputs")
    ] = None
    dropout: Annotated[
        float, Field(ge=0, lt=1, description="on embeddings and on what attention and feed-forward return")
    ] = 0.0
    attention: Annotated[
        Literal["task", "causal", "bidirectional"],
        Field(description="which keys a query sees; task: as its layout asks"),
    ] = "task"
    loops: Annotated[int, Field(ge=1, le=256, description="passes through the blocks, with the same parameters")] = (
        field(default=1, metadata={"introduced": 1})
    )
    injection: Annotated[
        Literal["none", "loop", "layer"],
        Field(description="the embeddings are added again before every later pass, or before every later block"),
    ] = field(default="none", metadata={"introduced": "none"})
    state_std: Annotated[
        float, Field(ge=0, description="standard deviation of noise that joins the embeddings, at test too; 0: none")
    ] = field(default=0.0, metadata={"introduced": 0.0})

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide a width of {self.width}")
        if self.injection == "loop" and self.loops == 1:
            raise ValueError("injection=loop does nothing in a single pass: set model.loops")
        if self.injection == "layer" and self.loops * self.layers == 1:
            raise ValueError("injection=layer does nothing where there is one block and one pass")


@dataclass(frozen=True)
class TrainConfig:
    """The optimisation."""

    steps: Annotated[int, Field(ge=1, le=10**12, description="optimiser steps (with epochs: set by them)")] = 5000
    batch: Annotated[int, Field(ge=1, description="examples a step")] = 64
    accumulate: Annotated[int, Field(ge=1, description="micro-batches a step is cut into; divide the batch")] = 1
    lengths_in_batch: Annotated[
        Literal["one", "mixed"], Field(description="one length for all examples of a batch, or one for each")
    ] = "one"
    examples: Annotated[
        int, Field(ge=0, description="size of a fixed training set; 0: fresh examples all the time")
    ] = 0
    epochs: Annotated[int, Field(ge=0, description="passes through the fixed set; 0: as many as the steps take")] = 0
    learning_rate: Annotated[float, Field(gt=0, description="at its highest")] = 1e-3
    schedule: Annotated[Literal["cosine", "linear", "constant"], Field(description="after the warm-up")] = "cosine"
    final_fraction: Annotated[float, Field(ge=0, le=1, description="where the schedule ends, over the highest")] = 0.1
    cooldown: Annotated[int, Field(ge=0, description="steps at the end over which a constant rate falls")] = field(
        default=0, metadata={"introduced": 0}
    )
    warmup: Annotated[int, Field(ge=0, description="steps of linear warm-up")] = 100
    beta1: Annotated[float, Field(ge=0, lt=1, description="of AdamW")] = 0.9
    beta2: Annotated[float, Field(ge=0, lt=1, description="of AdamW")] = 0.999
    epsilon: Annotated[float, Field(gt=0, description="of AdamW")] = 1e-8
    weight_decay: Annotated[float, Field(ge=0, description="of matrices, not of gains")] = 0.0
    clip: Annotated[float, Field(ge=0, description="largest norm of the gradient; 0: not clipped")] = 1.0
    precision: Annotated[Literal["fp32", "bf16"], Field(description="bf16: autocast")] = "fp32"
    init_seed: Annotated[int | None, Field(ge=0, description="of the parameters; none: the run's seed")] = None
    data_seed: Annotated[int | None, Field(ge=0, description="of examples and positions; none: the run's seed")] = None
    average: Annotated[
        float,
        Field(ge=0, lt=1, description="decay a step of an average of the weights, which is tested for them; 0: none"),
    ] = field(default=0.0, metadata={"introduced": 0.0})
    progressive: Annotated[
        float, Field(ge=0, le=1, description="share of the loss taken after a random part of the model's loops")
    ] = field(default=0.0, metadata={"introduced": 0.0})
    progressive_most: Annotated[
        int | None, Field(ge=1, description="loops of that part that gradients pass through, at most; none: all")
    ] = field(default=None, metadata={"introduced": None})
    check_every: Annotated[
        int, Field(ge=1, description="steps between checks: checkpoint, in-distribution loss, out-of-distribution look")
    ] = field(default=250)
    compile: Annotated[bool, Field(description="torch.compile the step")] = field(
        default=False, metadata={"identity": False}
    )

    def __post_init__(self) -> None:
        if self.batch % self.accumulate:
            raise ValueError(f"accumulate={self.accumulate} does not divide a batch of {self.batch}")
        if self.epochs and not self.examples:
            raise ValueError("epochs need a fixed training set: set train.examples")
        if self.examples and self.examples < self.batch:
            raise ValueError(f"examples={self.examples} do not fill a batch of {self.batch}")
        if self.cooldown and self.schedule != "constant":
            raise ValueError("cooldown is the end of a constant schedule: set train.schedule=constant")
        if self.progressive_most is not None and not self.progressive:
            raise ValueError("progressive_most limits the progressive loss: set train.progressive")


SECTION_CLASSES: Mapping[str, type] = {"model": ModelConfig, "train": TrainConfig}


@dataclass(frozen=True)
class EvaluationConfig:
    """The length sweep of a trained model; belongs to an evaluation, not to a run."""

    test_lengths: tuple[int, ...]
    examples: Annotated[int, Field(ge=1, le=10_000_000, description="examples a length")] = 1000
    test_seed: Annotated[int, Field(ge=0, lt=2**63, description="of the test sets")] = 0
    test_sets: tuple[str, ...] = ("random",)
    axis: str = ""
    axis_values: tuple[float, ...] = ()
    positions: Literal["drawn", "even"] = "drawn"


@dataclass(frozen=True)
class RunConfig:
    """What a run computes, up to its seed. `task_options` and `pe_options` are resolved: nothing is left to defaults.

    versions: of the task and of every encoding that takes part. plugins: sha256 of the files they came from.
    """

    task: str
    pe: str
    expansion: str
    train_lengths: tuple[int, ...]
    model: ModelConfig
    train: TrainConfig
    task_options: Mapping[str, options.Value]
    pe_options: Mapping[str, Mapping[str, options.Value]]
    versions: Mapping[str, int]
    plugins: Mapping[str, str]

    def identity(self) -> dict[str, Any]:
        """What is hashed: the configuration without `pe` as it was typed and without what does not change results."""
        return {
            "task": self.task,
            "expansion": self.expansion,
            "train_lengths": list(self.train_lengths),
            "model": options.identity_of(self.model),
            "train": options.identity_of(self.train),
            "task_options": dict(self.task_options),
            "pe_options": {name: dict(own) for name, own in self.pe_options.items() if own},
            "versions": {"training": TRAINING_VERSION, **self.versions},
            "plugins": dict(self.plugins),
        }

    def hash(self) -> str:
        """16 hexadecimal digits that name the configuration."""
        return content_hash(self.identity())

    def run_id(self, seed: int) -> str:
        """The name of a run: the configuration's hash and the seed."""
        return f"{self.hash()}-{seed}"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values, for the database; `sections` reads it back."""
        return {
            **self.identity(),
            "pe": self.pe,
            "model": options.plain(self.model),
            "train": options.plain(self.train),
            "pe_options": {name: dict(own) for name, own in self.pe_options.items()},
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RunConfig:
        """A configuration from what `to_dict` gave; fields that came later take the value they were introduced with."""
        return cls(
            task=stored["task"],
            pe=stored["pe"],
            expansion=stored["expansion"],
            train_lengths=tuple(stored["train_lengths"]),
            model=options.read(ModelConfig, options.restored(ModelConfig, stored["model"]), "model"),
            train=options.read(TrainConfig, options.restored(TrainConfig, stored["train"]), "train"),
            task_options=stored["task_options"],
            pe_options=stored["pe_options"],
            versions={name: version for name, version in stored["versions"].items() if name != "training"},
            plugins=stored["plugins"],
        )

    def to_toml(self) -> str:
        """A file that --config reads back to the same run."""
        tables: Sections = {"": {"task": self.task, "pe": self.pe, "train_lengths": lengths.show(self.train_lengths)}}
        tables["model"], tables["train"] = options.plain(self.model), options.plain(self.train)
        tables[self.task] = dict(self.task_options)
        tables.update({name: dict(own) for name, own in self.pe_options.items() if own})
        lines: list[str] = []
        for name, table in tables.items():
            lines += [f"[{name}]"] if name else []
            lines += [f"{key} = {_toml(value)}" for key, value in table.items()]
            lines.append("")
        return "\n".join(lines)


def _toml(value: options.Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str):
        return json.dumps("none" if value is None else value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


# Reading --------------------------------------------------------------------------------------------------------------


def load(path: Path) -> Sections:
    """The sections of a TOML file; top-level keys are in section ""."""
    try:
        return split(tomllib.loads(path.read_text()), str(path))
    except OSError as error:
        raise UserError(f"cannot read --config '{path}': {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"--config '{path}' is not TOML: {error}") from None


def split(values: Mapping[str, Any], where: str) -> Sections:
    """TOML tables as sections; top-level keys are in section ""."""
    sections: Sections = {"": {}}
    for name, value in values.items():
        if isinstance(value, dict):
            sections[name] = dict(value)
        else:
            sections[""][name] = value
    known = {field.name for field in dataclasses.fields(TopLevel)}
    homes = {field.name: home for home, cls in SECTION_CLASSES.items() for field in dataclasses.fields(cls)}
    for name in sections[""]:
        if name in homes and name not in known:
            raise UserError(f"{where}: '{name}' belongs in section [{homes[name]}]")
        if name not in known:
            raise unknown(f"key in {where}", name, known)
    return sections


@dataclass(frozen=True)
class TopLevel:
    """The keys that stand outside of any section."""

    task: str | None = None
    pe: str | None = None
    seeds: str | None = None
    train_lengths: str | None = None
    test_lengths: str | None = None
    test_sets: str | None = None
    axis: str | None = None
    examples: int | None = None
    test_seed: int | None = None
    positions: str | None = None


def settings(assignments: Sequence[str]) -> Sections:
    """The sections that `--set section.option=value` fill."""
    sections: Sections = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        section, dot, option = name.strip().partition(".")
        if not (equals and dot and section and option):
            raise UserError(f"--set '{assignment}' is not of the form section.option=value, as in train.steps=4000")
        sections.setdefault(section, {})[option] = value.strip()
    return sections


def merge(*layers: Sections) -> Sections:
    """Sections laid over each other, later ones winning."""
    merged: Sections = {}
    for layer in layers:
        for section, values in layer.items():
            merged.setdefault(section, {}).update(values)
    return merged


def seeds(sections: Sections) -> tuple[int, ...]:
    """The seeds asked for; seed 0 if none are."""
    return lengths.seeds(str(sections.get("", {}).get("seeds", "0")))

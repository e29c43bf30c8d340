"""What two stored configs differ in, split into what is the encoding's and what is everything else."""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from algolen.lengths import show
from algolen.store import ConfigRow

SHORT_HASH = 8
"""Digits of a plug-in's hash that tell one version of it from another."""

Options = Mapping[str, str]
"""Options by the name users set them with, as text."""


@functools.cache
def encoding_options(config: ConfigRow) -> Options:
    """What a row of a report is about: the encoding's options, versions and plug-ins."""
    return _flat(config)[0]


@functools.cache
def recipe_options(config: ConfigRow) -> Options:
    """How it was trained, and the model but for its encoding: what may be chosen for each encoding on its own."""
    return {name: value for name, value in other_options(config).items() if name.startswith(("model.", "train."))}


@functools.cache
def other_options(config: ConfigRow) -> Options:
    """What all rows of one table share: task, lengths, model and training."""
    return _flat(config)[1]


def task_settings(configs: Iterable[ConfigRow]) -> dict[str, Options]:
    """By hash of a config, its task's options and trained lengths in which configs of that task differ."""
    by_task: dict[str, dict[str, Options]] = defaultdict(dict)
    for config in configs:
        prefix = f"{config.task}."
        told = [item for item in other_options(config).items() if item[0].startswith((prefix, "train_lengths"))]
        by_task[config.task][config.hash] = {name.removeprefix(prefix): value for name, value in told}
    found: dict[str, Options] = {}
    for same in by_task.values():
        for hash, own in same.items():
            different = [name for name in own if len({other.get(name) for other in same.values()}) > 1]
            found[hash] = {name: own[name] for name in different if name != "version"}
    return found


def _flat(config: ConfigRow) -> tuple[Options, Options]:
    stored: dict[str, Any] = json.loads(config.config_json)
    members = {*config.expansion.split("+"), *stored.get("pe_options", {})}
    encoding: dict[str, str] = {}
    other: dict[str, str] = {}
    for name, value in _leaves(stored):
        section, _, rest = name.partition(".")
        if section in ("pe", "expansion"):
            continue
        if section == "pe_options":
            encoding[rest] = value
        elif section in ("versions", "plugins"):
            side = encoding if rest in members else other
            side[f"{rest}.{section.removesuffix('s')}"] = value if section == "versions" else value[:SHORT_HASH]
        else:
            other[f"{config.task}.{rest}" if section == "task_options" else name] = value
    # How a step was computed is recorded in a config but is no part of what it is.
    other.pop("train.compile", None)
    return encoding, other


def _leaves(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        found = []
        for name in value:
            found += _leaves(value[name], f"{prefix}.{name}" if prefix else str(name))
        return found
    return [(prefix, _text(value))]


def _text(value: Any) -> str:
    if isinstance(value, list) and value and all(type(item) is int for item in value):
        return show(value)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return value if isinstance(value, str) else json.dumps(value)


def differing(groups: Sequence[Options]) -> list[Options]:
    """For each of several sets of options, those that are not the same in all of them."""
    names = sorted({name for group in groups for name in group})
    differing = [name for name in names if len({group.get(name) for group in groups}) > 1]
    return [{name: group[name] for name in differing if name in group} for group in groups]


def said(options: Options) -> str:
    """Options as users would set them, in one line."""
    return ", ".join(f"{name}={value}" for name, value in options.items())

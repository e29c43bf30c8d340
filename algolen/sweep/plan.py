"""From studies to the runs they are made of. Everything that can be wrong with a study is found here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from algolen import config, experiment, presets
from algolen.config import Sections
from algolen.errors import UserError, unknown
from algolen.experiment import DEVELOPMENT_SEED, Experiment
from algolen.registry import Registry
from algolen.sweep.study import Entry, Study, Trial, check_seeds


@dataclass(frozen=True)
class Planned:
    """One encoding of a study with one recipe; `label` names the encoding within the study."""

    study: Study
    label: str
    entry: Entry
    trial: Trial
    experiment: Experiment
    seeds: tuple[int, ...]

    @property
    def chosen(self) -> bool:
        """Whether the recipe is the one that the study's file has chosen for this encoding."""
        return self.trial.name == (self.entry.trial or "")

    @cached_property
    def hash(self) -> str:
        """The name of the configuration in the database."""
        return self.experiment.config.hash()

    @cached_property
    def steps(self) -> int:
        """Optimiser steps of each run."""
        return self.experiment.steps


@dataclass(frozen=True)
class Run:
    """One run of a study."""

    planned: Planned
    seed: int

    @cached_property
    def id(self) -> str:
        """The run's name in the database."""
        return f"{self.planned.hash}-{self.seed}"

    def __str__(self) -> str:
        recipe = "" if self.planned.chosen else f", recipe {self.planned.trial.name}"
        return f"{self.planned.study.name}: {self.planned.label}{recipe}, seed {self.seed}"


def plan(
    study: Study, registry: Registry, trials: bool = False, quick: bool = False, seeds: tuple[int, ...] | None = None
) -> list[Planned]:
    """Each encoding of a study with the recipe chosen for it or, with `trials`, with every recipe.

    quick: only entries marked so. seeds: instead of those in the file. Everything is checked, also what is left out.
    Raises UserError, naming the file and the entry.
    """
    try:
        if seeds is not None:
            check_seeds(seeds, trials)
        if trials and not study.trials:
            raise UserError("it has no trials: add a [[trial]] for each recipe")
        found = list(_plan(study, registry, trials, seeds))
        _check_sections(study, found, registry)
        _check_different(found)
    except UserError as error:
        raise UserError(f"study '{study.path}': {error}") from None
    kept = [one for one in found if (one.entry.quick or not quick) and (one.chosen or trials)]
    if not kept:
        raise UserError(f"study '{study.path}' has no [[run]] marked quick")
    return kept


def runs(planned: Iterable[Planned]) -> list[Run]:
    """The runs of plans; one that several studies share is there once."""
    found: dict[str, Run] = {}
    for one in planned:
        for seed in one.seeds:
            run = Run(one, seed)
            found.setdefault(run.id, run)
    return list(found.values())


def _plan(study: Study, registry: Registry, trials: bool, seeds: tuple[int, ...] | None) -> Iterator[Planned]:
    for entry, label in zip(study.entries, study.labels, strict=True):
        for trial in study.trials or [study.trial(entry)]:
            wanted = study.trial_seeds if trials else study.seeds(entry)
            made = _experiment(study, entry, label, trial, registry, trials)
            yield Planned(study, label, entry, trial, made, wanted if seeds is None else seeds)


def _experiment(
    study: Study, entry: Entry, label: str, trial: Trial, registry: Registry, development: bool
) -> Experiment:
    try:
        own = config.merge(config.settings(trial.set), config.settings(entry.set))
        asked: Sections = {"": {"pe": entry.pe, **({"test_seed": DEVELOPMENT_SEED} if development else {})}}
        named: Sections = {"": {"task": study.task, "pe": entry.pe}}
        preset = presets.choose(study.header.preset, named, registry).sections if study.header.preset else {}
        return experiment.plan(config.merge(preset, study.sections, own, asked), own, registry)
    except UserError as error:
        with_trial = f" with trial '{trial.name}'" if trial.name else ""
        raise UserError(f"run '{label}'{with_trial}: {error}") from None


def _check_sections(study: Study, found: Sequence[Planned], registry: Registry) -> None:
    """Raises UserError for a section of the file that no run reads."""
    used = {"", "model", "train", study.task}
    used |= {name for planned in found for name in planned.experiment.config.expansion.split("+")}
    for section in study.sections:
        if section in used:
            continue
        if section in registry.tasks or section in registry.encodings:
            raise UserError(f"no run reads section [{section}]")
        raise unknown("section", section, used - {""})


def _check_different(found: Sequence[Planned]) -> None:
    """Raises UserError where two entries, or two recipes of one entry, come to the same configuration."""
    by_hash: dict[str, Planned] = {}
    for planned in found:
        other = by_hash.setdefault(planned.hash, planned)
        if other is planned:
            continue
        if other.label == planned.label:
            names = f"'{other.trial.name}' and '{planned.trial.name}'"
            raise UserError(f"run '{planned.label}': trials {names} come to the same settings")
        raise UserError(f"runs '{other.label}' and '{planned.label}' come to the same settings")

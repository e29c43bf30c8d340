"""Choosing recipes: what each trial of each encoding scored on development sets, and whether the file agrees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from algolen import statistics
from algolen.experiment import DEVELOPMENT_SEED
from algolen.recording import point_key
from algolen.store import Store
from algolen.sweep.plan import Planned

SCORE = "mean exact match over the test lengths, on development sets"
"""What trials are compared by."""


@dataclass(frozen=True)
class Scored:
    """What one recipe scored with one encoding, for each of its seeds; None where it is not trained and tested yet.

    A trial that diverged has a score of 0.
    """

    planned: Planned
    seeds: tuple[float | None, ...]

    @property
    def score(self) -> float | None:
        """The mean over seeds, once all of them are there."""
        known = [score for score in self.seeds if score is not None]
        return sum(known) / len(known) if len(known) == len(self.seeds) else None


@dataclass(frozen=True)
class Choice:
    """All trials of one encoding."""

    label: str
    chosen: str
    trials: tuple[Scored, ...]

    @property
    def complete(self) -> bool:
        return all(trial.score is not None for trial in self.trials)

    @property
    def best(self) -> tuple[str, ...]:
        """The recipes with the highest score; several where they are equal, none where no trial is finished."""
        scores = {trial.planned.trial.name: trial.score for trial in self.trials if trial.score is not None}
        return tuple(name for name, score in scores.items() if score == max(scores.values()))

    @property
    def agrees(self) -> bool | None:
        """Whether the recipe that the file has chosen is the best; None until all trials are finished."""
        return self.chosen in self.best if self.complete else None


def choices(store: Store, planned: Sequence[Planned]) -> list[Choice]:
    """The trials of one study, planned with every recipe, by encoding."""
    by_label: dict[str, list[Scored]] = defaultdict(list)
    for one in planned:
        by_label[one.label].append(Scored(one, tuple(_score(store, one, seed) for seed in one.seeds)))
    return [Choice(label, own[0].planned.entry.trial or "", tuple(own)) for label, own in by_label.items()]


def _score(store: Store, planned: Planned, seed: int) -> float | None:
    run_id = f"{planned.hash}-{seed}"
    run = store.find(run_id)
    if run is None or run.status not in ("done", "diverged"):
        return None
    if run.status == "diverged":
        return 0.0
    counted: dict[object, list[int]] = defaultdict(lambda: [0, 0])
    asked = planned.experiment.evaluation
    for stratum in store.strata(run_id):
        evaluation = stratum.evaluation
        found = evaluation.checkpoint, evaluation.purpose, evaluation.test_seed, evaluation.examples
        if found == ("last", "development", DEVELOPMENT_SEED, asked.examples):
            counted[stratum.key][0] += stratum.count.exact
            counted[stratum.key][1] += stratum.count.units
    wanted = [point_key(test_set) for test_set in planned.experiment.test_sets("development")]
    if any(key not in counted for key in wanted):
        return None
    return sum(statistics.exact_match(*counted[key]) for key in wanted) / len(wanted)

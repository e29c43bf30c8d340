"""What goes into the store and what comes out, as plain frozen rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from algolen.errors import UserError
from algolen.identity import content_hash

Status = Literal["pending", "running", "done", "failed", "diverged", "interrupted", "stale", "cancelled"]
Ending = Literal["done", "failed", "diverged", "interrupted"]
Checkpoint = Literal["last", "best", "training"]
Purpose = Literal["report", "development"]

TRIAL_SEEDS_FROM = 100
"""Runs with a seed from here up are trials: recipes are chosen by them, on development sets; reports leave them out."""


def is_trial(seed: int) -> bool:
    """Whether runs of that seed are trials."""
    return seed >= TRIAL_SEEDS_FROM


class Conflict(UserError):
    """The same point was counted twice with different results, although results are deterministic."""


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A training config as stored. `pe` is the encoding as typed, `expansion` what it expands to."""

    hash: str
    task: str
    task_version: int
    pe: str
    expansion: str
    train_shortest: int
    train_longest: int
    config_json: str


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """Where a run was computed: recorded beside its results, never part of its identity."""

    python: str
    torch: str
    platform: str
    device: str
    device_name: str
    threads: int
    algolen_version: str
    git_commit: str | None = None
    git_dirty: bool | None = None
    compiled: bool = False
    stack_width: int = 1

    @property
    def id(self) -> str:
        return content_hash(dataclasses.asdict(self))

    @property
    def machine(self) -> tuple[object, ...]:
        """What decides how sums are rounded: the same run comes out the same where this is the same."""
        return (
            self.torch, self.platform, self.device, self.device_name, self.threads, bool(self.compiled),
            self.stack_width,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One way of testing one run's checkpoint; test lengths add points to it.

    `positions` is the policy for random positions at test, `extension` the test-time extension ('' for none).
    """

    run_id: str
    checkpoint: Checkpoint
    test_seed: int
    examples: int
    positions: str
    extension: str = ""
    purpose: Purpose = "report"

    @property
    def id(self) -> str:
        return content_hash(dataclasses.asdict(self))


@dataclass(frozen=True, slots=True, order=True)
class PointKey:
    """What a point is a measurement at, within an evaluation and a step."""

    test_set: str
    length: int
    axis: str = ""
    axis_value: float = 0.0

    def __str__(self) -> str:
        beside = f", {self.axis} {self.axis_value:g}" if self.axis else ""
        return f"test set {self.test_set}, length {self.length:,}{beside}"


@dataclass(frozen=True, slots=True, order=True)
class Count:
    """Right and total, for one stratum of a test set."""

    stratum: str
    units: int
    exact: int
    tokens: int
    tokens_correct: int


@dataclass(frozen=True, slots=True)
class Point:
    """A test set that was scored: its identity, its baselines and its counts by stratum."""

    key: PointKey
    examples: int
    sha256: str
    counts: tuple[Count, ...]
    chance: float | None = None
    input_blind: float | None = None

    def __post_init__(self) -> None:
        # A stratum that nothing fell into says nothing; leaving it out keeps two countings equal.
        object.__setattr__(self, "counts", tuple(count for count in self.counts if count.units))
        if not self.counts:
            raise ValueError(f"{self.key}: a point without counts")


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A value logged during training; it may be infinite or NaN."""

    step: int
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """A file a run left behind; `path` is relative to the database's folder."""

    run_id: str
    kind: str
    path: str
    sha256: str
    bytes: int
    step: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What became of asking for a run: it is ours, it is done already, or a living worker holds it.

    owner and heartbeat_age (in seconds) tell who holds it; previous and step, where it was taken over from; row, what
    was recorded of it before.
    """

    outcome: Literal["claimed", "done", "held"]
    run_id: str
    attempt: int
    owner: str | None = None
    heartbeat_age: float | None = None
    previous: Status | None = None
    step: int = 0
    row: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run together with what its config says."""

    id: str
    config_hash: str
    seed: int
    task: str
    task_version: int
    pe: str
    expansion: str
    train_shortest: int
    train_longest: int
    status: Status
    attempt: int
    owner: str | None
    heartbeat_at: str | None
    started_at: str | None
    finished_at: str | None
    error: str | None
    step: int
    steps: int
    parameters: int | None
    seconds: float | None
    greedy: bool
    environment_id: str | None
    shipped: bool

    @property
    def trial(self) -> bool:
        return is_trial(self.seed)


@dataclass(frozen=True, slots=True)
class CurveRow:
    """One run at one test length, summed over strata. A run that was not tested has one row, without a point."""

    run: RunRow
    evaluation: EvaluationRow | None = None
    step: int = 0
    point: Point | None = None


@dataclass(frozen=True, slots=True)
class StratumRow:
    """One stratum of one point of a run, with the evaluation it belongs to."""

    evaluation: EvaluationRow
    step: int
    key: PointKey
    count: Count

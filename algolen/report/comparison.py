"""Runs arranged for comparison: tables of encodings that share everything else, rows of seeds, with their measures."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from algolen import statistics
from algolen.report.differences import Options, differing, encoding_options, other_options, recipe_options, said
from algolen.statistics import Horizon
from algolen.store import ConfigRow, CurveRow, Point, RunRow

LOST = ("failed", "diverged")
"""Statuses of runs that were attempted, have no result, and count as not solved."""


@dataclass(frozen=True)
class SeedCurve:
    """One trained run and what it was measured at, by length."""

    run: RunRow
    step: int
    points: Mapping[int, Point]

    @cached_property
    def curve(self) -> dict[int, float]:
        """Exact match by tested length."""
        return {n: statistics.exact_match(p.counts[0].exact, p.counts[0].units) for n, p in self.points.items()}

    @property
    def train(self) -> tuple[int, int]:
        return self.run.train_shortest, self.run.train_longest

    @property
    def in_distribution(self) -> float | None:
        """Exact match over all units of the tested lengths within the trained range."""
        counts = [p.counts[0] for n, p in self.points.items() if self.train[0] <= n <= self.train[1]]
        return sum(c.exact for c in counts) / sum(c.units for c in counts) if counts else None


@dataclass(frozen=True)
class Row:
    """One encoding tested in one way: its measured seeds, and the runs that were lost on the way.

    `differences` holds what tells it from a row of the same name.
    """

    config: ConfigRow
    extension: str
    positions: str
    seeds: tuple[SeedCurve, ...]
    lost: tuple[RunRow, ...]
    threshold: float
    differences: Options = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The encoding as typed, with its test-time extension."""
        return f"{self.config.pe}@{self.extension}" if self.extension else self.config.pe

    @property
    def label(self) -> str:
        """The name, with what tells it from another row of that name."""
        return f"{self.name} ({said(self.differences)})" if self.differences else self.name

    @property
    def train(self) -> tuple[int, int]:
        return self.config.train_shortest, self.config.train_longest

    @property
    def greedy(self) -> bool:
        """Whether teacher forcing gives exactly the exact match of greedy decoding."""
        return all(run.greedy for run in (*(seed.run for seed in self.seeds), *self.lost))

    @property
    def attempted(self) -> int:
        return len(self.seeds) + len(self.lost)

    def at(self, length: int) -> list[float]:
        """Exact match of every seed that was tested at a length."""
        return [seed.curve[length] for seed in self.seeds if length in seed.curve]

    @cached_property
    def in_distribution(self) -> list[float]:
        """Exact match at trained lengths, for every seed that was tested there."""
        return [value for seed in self.seeds if (value := seed.in_distribution) is not None]

    @cached_property
    def horizons(self) -> list[Horizon]:
        """The horizons of the measured seeds, shortest first."""
        found = (statistics.horizon(seed.curve, self.train, self.threshold) for seed in self.seeds)
        return statistics.ordered_horizons(found)

    @cached_property
    def solved(self) -> tuple[int, int] | None:
        """How many seeds solve twice the longest trained length, of how many; None where no seed was tested so far.

        Runs that failed or diverged count as not solved.
        """
        verdicts = [statistics.solved(seed.curve, self.train, threshold=self.threshold) for seed in self.seeds]
        told = [verdict for verdict in verdicts if verdict is not None]
        if not told and (self.seeds or not self.lost):
            return None
        return sum(told), len(told) + len(self.lost)

    @property
    def rank(self) -> tuple[float, float, str]:
        """For sorting: longest median horizon first, then the most exact match at all."""
        length = statistics.median_horizon(self.horizons).length if self.seeds else None
        values = [value for seed in self.seeds for value in seed.curve.values()]
        return -float(length or 0), -sum(values) / max(len(values), 1), self.label


@dataclass(frozen=True)
class Comparison:
    """Rows that differ in their encoding only, or in their recipe too; `shared` holds the options they have in common,
    `settings` what tells it from others of the same task."""

    task: str
    train: tuple[int, int]
    train_lengths: str
    test_seed: int | None
    examples: int | None
    axis: str
    axis_value: float
    rows: tuple[Row, ...]
    shared: Options
    settings: Options = dataclasses.field(default_factory=dict)

    @cached_property
    def lengths(self) -> list[int]:
        """Every length any row was tested at."""
        return sorted({length for row in self.rows for seed in row.seeds for length in seed.points})

    def baseline(self, name: str) -> dict[int, float]:
        """`chance` or `input_blind` by length: a property of the test sets, which all rows share."""
        points = [p for row in self.rows for seed in row.seeds for p in seed.points.values()]
        return {p.key.length: value for p in points if (value := getattr(p, name)) is not None}


@dataclass(frozen=True)
class _Shared:
    """What the rows of a table have in common; with `any_recipe` they may differ in model and training."""

    any_recipe: bool
    task: str
    options: tuple[tuple[str, str], ...]
    test_seed: int | None
    examples: int | None
    axis: str
    axis_value: float


def compare(
    curves: Iterable[CurveRow], configs: Mapping[str, ConfigRow], threshold: float, any_recipe: bool = False
) -> list[Comparison]:
    """Arrange measured runs into comparisons; runs that are not done and were not lost are left out.

    With `any_recipe`, encodings stand beside each other whatever their model and training, and rows say what differs.
    """
    runs: dict[str, dict[str, RunRow]] = defaultdict(dict)
    measured: dict[tuple[_Shared, str, str, str], dict[str, list[CurveRow]]] = defaultdict(lambda: defaultdict(list))
    for curve in curves:
        runs[curve.run.config_hash][curve.run.id] = curve.run
        if curve.evaluation is None or curve.point is None or curve.run.status != "done":
            continue
        e, key = curve.evaluation, curve.point.key
        config = configs[curve.run.config_hash]
        shared = _shared(any_recipe, config, e.test_seed, e.examples, key.axis, key.axis_value)
        measured[shared, curve.run.config_hash, e.extension, e.positions][curve.run.id].append(curve)

    tables: dict[_Shared, list[Row]] = defaultdict(list)
    lost = {hash: tuple(run for run in own.values() if run.status in LOST) for hash, own in runs.items()}
    for (shared, hash, extension, positions), by_run in measured.items():
        seeds = tuple(_seed(rows) for rows in by_run.values())
        tables[shared].append(Row(configs[hash], extension, positions, seeds, lost[hash], threshold))
    for hash in lost.keys() - {hash for _, hash, _, _ in measured}:
        if lost[hash]:
            _place_lost(any_recipe, tables, Row(configs[hash], "", "", (), lost[hash], threshold))
    return _told_apart([_comparison(shared, rows) for shared, rows in tables.items()])


def _shared(
    any_recipe: bool,
    config: ConfigRow,
    test_seed: int | None,
    examples: int | None,
    axis: str,
    axis_value: float,
) -> _Shared:
    free = recipe_options(config) if any_recipe else {}
    options = tuple(sorted((name, value) for name, value in other_options(config).items() if name not in free))
    return _Shared(any_recipe, config.task, options, test_seed, examples, axis, axis_value)


def _seed(rows: Sequence[CurveRow]) -> SeedCurve:
    points = {row.point.key.length: row.point for row in rows if row.point}
    return SeedCurve(rows[0].run, rows[0].step, points)


def _place_lost(any_recipe: bool, tables: dict[_Shared, list[Row]], row: Row) -> None:
    """A row without any result belongs beside those it would have been compared with."""
    alone = _shared(any_recipe, row.config, None, None, "", 0.0)
    beside = [shared for shared in tables if (shared.task, shared.options) == (alone.task, alone.options)]
    for shared in beside or [alone]:
        tables[shared].append(row)


def _comparison(shared: _Shared, rows: Sequence[Row]) -> Comparison:
    named: dict[str, list[Row]] = defaultdict(list)
    for row, recipe in zip(rows, _recipes(rows, shared), strict=True):
        named[row.name].append(dataclasses.replace(row, differences=recipe))
    told = []
    for same in named.values():
        options = [{**encoding_options(row.config), "positions": row.positions} for row in same]
        for row, own in zip(same, differing(options), strict=True):
            differences = {**row.differences, **own}
            # Two configs of one name and the same options can only differ in something that has no name here.
            twins = [other for other in same if other.differences == row.differences]
            unnamed = len(twins) > 1 and not any(differing(options))
            differences = {**differences, "config": row.config.hash} if unnamed else differences
            told.append(dataclasses.replace(row, differences=differences))
    train = min(row.train[0] for row in rows), max(row.train[1] for row in rows)
    train_lengths = dict(shared.options).get("train_lengths", f"{train[0]}-{train[1]}")
    ordered = tuple(sorted(told, key=lambda row: row.rank))
    return Comparison(
        shared.task,
        train,
        train_lengths,
        shared.test_seed,
        shared.examples,
        shared.axis,
        shared.axis_value,
        ordered,
        dict(shared.options),
    )


def _recipes(rows: Sequence[Row], shared: _Shared) -> list[Options]:
    """What tells the recipes of rows apart, without the names of its sections, which would fill the column."""
    if not shared.any_recipe:
        return [{}] * len(rows)
    found = differing([recipe_options(row.config) for row in rows])
    return [{name.partition(".")[2]: value for name, value in recipe.items()} for recipe in found]


def _told_apart(tables: Sequence[Comparison]) -> list[Comparison]:
    """Each comparison with what tells it from the others of its task, in a fixed order."""
    by_task: dict[str, list[Comparison]] = defaultdict(list)
    for table in tables:
        by_task[table.task].append(table)
    told = []
    for same in by_task.values():
        options = [
            {
                **{name: value for name, value in table.shared.items() if name != "train_lengths"},
                "examples": str(table.examples),
                "test seed": str(table.test_seed),
            }
            for table in same
        ]
        told += [
            dataclasses.replace(table, settings=settings)
            for table, settings in zip(same, differing(options), strict=True)
        ]
    return sorted(told, key=lambda t: (t.task, t.train, t.axis, t.axis_value, said(t.settings)))

"""Runs arranged for comparison: tables of encodings tested alike, rows of seeds, with their measures."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase

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

    `differences` holds what tells it from a row of the same name and recipe; `recipe` those options of model and
    training in which the rows of its table differ, and `mark` the letter under which the table explains them.
    """

    config: ConfigRow
    extension: str
    positions: str
    seeds: tuple[SeedCurve, ...]
    lost: tuple[RunRow, ...]
    threshold: float
    differences: Options = dataclasses.field(default_factory=dict)
    recipe: Options = dataclasses.field(default_factory=dict)
    mark: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What is tested, and how: the same row in each table of a family."""
        return self.config.hash, self.extension, self.positions

    @property
    def name(self) -> str:
        """The encoding as typed, with its test-time extension."""
        return f"{self.config.pe}@{self.extension}" if self.extension else self.config.pe

    @property
    def label(self) -> str:
        """The name, with what tells it from another row of that name, and the mark of its recipe."""
        told = f" ({said(self.differences)})" if self.differences else ""
        return f"{self.name}{told}{f' [{self.mark}]' if self.mark else ''}"

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

    @property
    def seeds_attempted(self) -> list[str]:
        """How many seeds were attempted, and how many of them failed or diverged: "3", "1 diverged"."""
        lost = Counter(run.status for run in self.lost)
        return [str(self.attempted), *(f"{count} {status}" for status, count in sorted(lost.items()))]

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
    def rank(self) -> tuple[float, float, str, str]:
        """For sorting: longest median horizon first, then the most exact match at all."""
        length = statistics.median_horizon(self.horizons).length if self.seeds else None
        values = [value for seed in self.seeds for value in seed.curve.values()]
        return -float(length or 0), -sum(values) / max(len(values), 1), self.label, said(self.recipe)


@dataclass(frozen=True)
class Comparison:
    """Rows that differ in their encoding and, unless parted by it, their recipe.

    `shared` holds the options they have in common, `settings` what tells the table from others of the same task.
    """

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

    @property
    def task_options(self) -> Options:
        """The options of the task, without its name before them."""
        own = {name.partition(".")[2]: value for name, value in self.shared.items() if name.startswith(f"{self.task}.")}
        return {name: value for name, value in own.items() if name != "version"}

    @cached_property
    def recipes(self) -> dict[str, Options]:
        """The recipes of the rows by their marks: what they differ in; none where all rows share one."""
        return {row.mark: row.recipe for row in self.rows if row.mark}

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
    """What the rows of a table have in common."""

    task: str
    options: tuple[tuple[str, str], ...]
    test_seed: int | None
    examples: int | None
    axis: str
    axis_value: float


def compare(
    curves: Iterable[CurveRow], configs: Mapping[str, ConfigRow], threshold: float, same_recipe: bool = False
) -> list[Comparison]:
    """Arrange measured runs into comparisons; runs that are not done and were not lost are left out.

    Encodings stand beside each other whatever their model and training, since each may have been tuned on its own, and
    rows say what differs. With `same_recipe`, tables part them by it.
    """
    runs: dict[str, dict[str, RunRow]] = defaultdict(dict)
    measured: dict[tuple[_Shared, str, str, str], dict[str, list[CurveRow]]] = defaultdict(lambda: defaultdict(list))
    for curve in curves:
        runs[curve.run.config_hash][curve.run.id] = curve.run
        if curve.evaluation is None or curve.point is None or curve.run.status != "done":
            continue
        e, key = curve.evaluation, curve.point.key
        options = _shared_options(configs[curve.run.config_hash], same_recipe)
        shared = _Shared(curve.run.task, options, e.test_seed, e.examples, key.axis, key.axis_value)
        measured[shared, curve.run.config_hash, e.extension, e.positions][curve.run.id].append(curve)

    tables: dict[_Shared, list[Row]] = defaultdict(list)
    lost = {hash: tuple(run for run in own.values() if run.status in LOST) for hash, own in runs.items()}
    for (shared, hash, extension, positions), by_run in measured.items():
        seeds = tuple(_seed(rows) for rows in by_run.values())
        tables[shared].append(Row(configs[hash], extension, positions, seeds, lost[hash], threshold))
    for hash in lost.keys() - {hash for _, hash, _, _ in measured}:
        if lost[hash]:
            options = _shared_options(configs[hash], same_recipe)
            _place_lost(tables, options, Row(configs[hash], "", "", (), lost[hash], threshold))
    families: dict[_Shared, list[_Shared]] = defaultdict(list)
    for shared in tables:
        families[dataclasses.replace(shared, axis_value=0.0)].append(shared)
    made = [_family({shared: tables[shared] for shared in family}) for family in families.values()]
    return _told_apart([table for family in made for table in family])


def _shared_options(config: ConfigRow, same_recipe: bool) -> tuple[tuple[str, str], ...]:
    free = {} if same_recipe else recipe_options(config)
    return tuple(sorted((name, value) for name, value in other_options(config).items() if name not in free))


def _seed(rows: Sequence[CurveRow]) -> SeedCurve:
    points = {row.point.key.length: row.point for row in rows if row.point}
    return SeedCurve(rows[0].run, rows[0].step, points)


def _place_lost(tables: dict[_Shared, list[Row]], options: tuple[tuple[str, str], ...], row: Row) -> None:
    """A row without any result belongs beside those it would have been compared with."""
    beside = [shared for shared in tables if (shared.task, shared.options) == (row.config.task, options)]
    for shared in beside or [_Shared(row.config.task, options, None, None, "", 0.0)]:
        tables[shared].append(row)


def _family(tables: Mapping[_Shared, Sequence[Row]]) -> list[Comparison]:
    """Tables that differ in nothing but the value of an axis: a row has the same label and mark in all of them."""
    found = {row.key: row for rows in tables.values() for row in rows}
    configs = {row.config.hash: row.config for row in found.values()}
    recipes = dict(zip(configs, differing([recipe_options(config) for config in configs.values()]), strict=True))
    named: dict[str, list[Row]] = defaultdict(list)
    for row in found.values():
        named[row.name].append(dataclasses.replace(row, recipe=recipes[row.config.hash]))
    told = {row.key: row for same in named.values() for row in _named_apart(same)}
    made = []
    for shared, rows in sorted(tables.items(), key=lambda item: item[0].axis_value):
        alike = ((row, told[row.key]) for row in rows)
        named_rows = [dataclasses.replace(row, recipe=own.recipe, differences=own.differences) for row, own in alike]
        made.append(_comparison(shared, named_rows))
    return _marked(made)


def _comparison(shared: _Shared, rows: Sequence[Row]) -> Comparison:
    train = min(row.train[0] for row in rows), max(row.train[1] for row in rows)
    return Comparison(
        shared.task,
        train,
        dict(shared.options).get("train_lengths", f"{train[0]}-{train[1]}"),
        shared.test_seed,
        shared.examples,
        shared.axis,
        shared.axis_value,
        tuple(sorted(rows, key=lambda row: row.rank)),
        dict(shared.options),
    )


def _named_apart(same: Sequence[Row]) -> Iterator[Row]:
    """Rows of one name, with what tells them apart."""
    # A row without results was tested nowhere, and differs from none by where.
    positions = len({row.positions for row in same if row.seeds}) > 1
    options = [
        {**encoding_options(row.config), **({"positions": row.positions} if positions and row.seeds else {})}
        for row in same
    ]
    for row, own in zip(same, differing(options), strict=True):
        # Two configs of one name, recipe and options can only differ in something that has no name here.
        twins = [other for other in same if other.recipe == row.recipe]
        unnamed = len(twins) > 1 and not any(differing(options))
        yield dataclasses.replace(row, differences={"config": row.config.hash} if unnamed else own)


def _marked(tables: Sequence[Comparison]) -> list[Comparison]:
    """The same with a letter for each recipe, where there are several: a, b, … z, aa, ab, …"""
    letters = (f"{a}{b}" for a in ("", *ascii_lowercase) for b in ascii_lowercase)
    marks = {"": ""}
    found = []
    for table in tables:
        for row in table.rows:
            if said(row.recipe) not in marks:
                marks[said(row.recipe)] = next(letters, "…")
        rows = tuple(dataclasses.replace(row, mark=marks[said(row.recipe)]) for row in table.rows)
        found.append(dataclasses.replace(table, rows=rows))
    return found


def _told_apart(tables: Sequence[Comparison]) -> list[Comparison]:
    """Each comparison with what tells it from the others of its task, in a fixed order."""
    by_task: dict[str, list[Comparison]] = defaultdict(list)
    for table in tables:
        by_task[table.task].append(table)
    told = []
    for same in by_task.values():
        # A table of runs that were all lost was tested with nothing, and differs from none by what.
        tests = {(table.examples, table.test_seed) for table in same if table.examples is not None}
        options = [{**_settings(table), **(_test(table) if len(tests) > 1 else {})} for table in same]
        told += [
            dataclasses.replace(table, settings=settings)
            for table, settings in zip(same, differing(options), strict=True)
        ]
    # Those that differ in the value of an axis alone come one after the other.
    return sorted(told, key=lambda t: (t.task, t.train, t.axis, said(t.settings), t.axis_value))


def _settings(table: Comparison) -> Options:
    return {name: value for name, value in table.shared.items() if name != "train_lengths"}


def _test(table: Comparison) -> Options:
    return {} if table.examples is None else {"examples": str(table.examples), "test seed": str(table.test_seed)}

"""What a table shows: encodings down; across, the tested lengths, or the values of an axis at the one length tested."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from algolen import statistics
from algolen.report.comparison import Comparison, Row

BASELINES = (("chance", "chance"), ("best input-blind answer", "input_blind"))
"""Titles and names of the rows below the encodings."""


@dataclass(frozen=True)
class Line:
    """A row of a grid: exact match of every seed, by column."""

    row: Row
    values: Mapping[float, Sequence[float]]


@dataclass(frozen=True)
class Grid:
    """Exact match by column. Columns whose `regions` differ are divided from each other."""

    corner: str
    columns: tuple[float, ...]
    regions: tuple[int, ...]
    lines: tuple[Line, ...]
    baselines: tuple[tuple[str, Mapping[float, float]], ...]

    @property
    def ranged(self) -> bool:
        """Whether any cell is about several seeds."""
        return any(len(line.row.seeds) > 1 for line in self.lines)


def families(tables: Sequence[Comparison]) -> list[tuple[Comparison, ...]]:
    """Tables in their order, those together that show one length at several values of an axis."""
    grouped = (tuple(group) for _, group in groupby(tables, key=_family))
    return [family for group in grouped for family in ([group] if _one_length(group) else [(one,) for one in group])]


def _family(table: Comparison) -> object:
    shared = tuple(table.shared.items()), tuple(table.settings.items())
    return table.task, table.train, table.test_seed, table.examples, table.axis, shared


def _one_length(tables: Sequence[Comparison]) -> bool:
    return len(tables) > 1 and bool(tables[0].axis) and len({n for table in tables for n in table.lengths}) == 1


def by_length(table: Comparison) -> Grid:
    """Lengths across; those below, within and above the trained ones are divided."""
    lines = (Line(row, {n: values for n in table.lengths if (values := row.at(n))}) for row in table.rows)
    regions = ((length >= table.train[0]) - 1 + (length > table.train[1]) for length in table.lengths)
    found = ((title, table.baseline(name)) for title, name in BASELINES)
    baselines = [(title, {float(n): value for n, value in values.items()}) for title, values in found if values]
    return Grid("exact match at length", tuple(table.lengths), tuple(regions), tuple(lines), tuple(baselines))


def by_axis(tables: Sequence[Comparison]) -> Grid:
    """Values of the axis across, at the only length; the best encodings first."""
    values: dict[object, dict[float, list[float]]] = defaultdict(dict)
    found: dict[object, list[Row]] = defaultdict(list)
    for table in tables:
        for row in table.rows:
            found[row.key].append(row)
            if here := [value for length in table.lengths for value in row.at(length)]:
                values[row.key][table.axis_value] = here
    lines = sorted((Line(_merged(rows), values[key]) for key, rows in found.items()), key=_rank)
    columns = tuple(table.axis_value for table in tables)
    baselines = []
    for title, name in BASELINES:
        told = {table.axis_value: value for table in tables for value in table.baseline(name).values()}
        baselines += [(title, told)] if told else []
    return Grid(f"exact match at {tables[0].axis}", columns, (0,) * len(columns), tuple(lines), tuple(baselines))


def _merged(rows: Sequence[Row]) -> Row:
    """The row with every seed that was tested at any value."""
    seeds = {seed.run.id: seed for row in rows for seed in row.seeds}
    return dataclasses.replace(rows[0], seeds=tuple(seeds.values()))


def _rank(line: Line) -> tuple[float, str]:
    medians = [statistics.median(values) for values in line.values.values()]
    return -sum(medians), line.row.label


def grid(family: Sequence[Comparison]) -> Grid:
    """The grid of one table, or of several values of an axis."""
    return by_axis(family) if len(family) > 1 else by_length(family[0])

"""Comparisons as tables for the terminal: exact match by length, then what the seeds say.

Colour only repeats what the numbers say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from algolen import statistics
from algolen.report.blocks import blocks
from algolen.report.colour import heat
from algolen.report.comparison import Comparison, Row
from algolen.report.differences import said
from algolen.report.grid import Grid, families, grid
from algolen.report.text import LABEL_WIDTH, NO_GREEDY, NOT_TESTED, factor, fraction, labelled, spread

SUMMARY_WIDTH = 54
"""Columns of a terminal below which the summary is lines of text."""


def render(tables: Sequence[Comparison], width: int) -> Iterator[RenderableType]:
    """Everything a report shows of its comparisons, for a terminal of `width` columns."""
    for index, family in enumerate(families(tables)):
        if index:
            yield ""
        name, *parts = title(family)
        yield Text(name, "bold").append(" · " + " · ".join(parts), Style(bold=False))
        shown = grid(family)
        for block in blocks(shown, width):
            yield ""
            yield block
        yield ""
        if len(family) == 1:
            yield summary(family[0]) if width >= SUMMARY_WIDTH else Text("\n".join(_summary_lines(family[0])))
            yield ""
        for note in notes(family, shown):
            yield Text(note, "dim")


def summary(table: Comparison) -> Table:
    """One row an encoding: in distribution, horizon and its factor, seeds that solve the target, seeds attempted."""
    target = statistics.target_length(table.train)
    found = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    # Where the width is short, names go on in further lines; numbers are never cut.
    found.add_column("over seeds", max_width=LABEL_WIDTH, overflow="fold")
    for header in ("trained\nlengths", "horizon", f"solved\nat {target:,}", "Wilson\n95 %", "seeds"):
        found.add_column(header, no_wrap=True)
    for row in table.rows:
        found.add_row(
            labelled(row), _in_distribution(row), _horizon(row), *_solved(row), "\n".join(row.seeds_attempted)
        )
    return found


def _summary_lines(table: Comparison) -> Iterator[str]:
    """The same where columns would not fit."""
    target = statistics.target_length(table.train)
    for row in table.rows:
        solved, interval = _solved(row)
        horizon = _horizon(row).replace("\n", ", ")
        told = f"horizon {horizon}; solved at {target:,} {solved} ({interval}); seeds {', '.join(row.seeds_attempted)}"
        yield f"{labelled(row).plain}: {told}"


def _in_distribution(row: Row) -> Text:
    values = row.in_distribution
    if not values:
        return Text(NOT_TESTED)
    middle = statistics.median(values)
    text = Text().append(f" {fraction(middle)} ", heat(middle))
    return text.append(f"\n{spread(values)}") if len(values) > 1 else text


def _horizon(row: Row) -> str:
    if not row.horizons:
        return NOT_TESTED
    middle = statistics.median_horizon(row.horizons)
    first, last = str(row.horizons[0]), str(row.horizons[-1])
    text = str(middle) if middle.length is None else f"{middle} = {factor(middle.length / row.train[1])}"
    if len(row.horizons) == 1:
        return text
    return f"{text}\n" + (f"{first} to {last}" if first != last else f"all {first}")


def _solved(row: Row) -> tuple[str, str]:
    if row.solved is None:
        return NOT_TESTED, NOT_TESTED
    low, high = statistics.wilson(*row.solved)
    return f"{row.solved[0]}/{row.solved[1]}", f"{low:.2f}–{high:.2f}"


def title(family: Sequence[Comparison]) -> list[str]:
    """The task, what was trained on, and what tells these tables from others of the task."""
    table = family[0]
    trained = table.shared.get(f"{table.task}.{table.axis}", "none")
    with_value = "" if trained == "none" else f" with {table.axis} {trained.removesuffix('.0')}"
    parts = [table.task, f"trained on lengths {table.train_lengths}{with_value}"]
    if len(family) > 1:
        parts.append(f"tested at length {table.lengths[0]:,}")
    elif table.axis:
        parts.append(f"tested at {table.axis} {table.axis_value:g}")
    return [*parts, said(table.settings)] if table.settings else parts


def notes(family: Sequence[Comparison], shown: Grid, divided: bool = True) -> Iterator[str]:
    """What has to be known to read the numbers, a paragraph each. divided: whether columns and ranges are set apart."""
    table, rows = family[0], [line.row for line in shown.lines]
    examples = f"{table.examples:,} examples a {'column' if len(family) > 1 else 'length'}, " if table.examples else ""
    ranged = f"; median over seeds, {'below it' if divided else 'with'} their range" if shown.ranged else ""
    yield f"Exact match: every token of an answer (or read) right; {examples}fractions cut to two decimals{ranged}."
    if len(family) > 1:
        yield from [_seeds_of_all(rows)] * divided
    else:
        lengths = f"{table.train[0]:,} to {table.train[1]:,}"
        told = f"│ parts trained lengths ({lengths}) from others" if divided else f"Trained lengths are {lengths}"
        yield f"{told}. {_horizons(table)}"
    if table.task_options:
        yield f"The task: {said(table.task_options)}."
    recipes = {mark: recipe for one in family for mark, recipe in one.recipes.items()}
    for mark, recipe in sorted(recipes.items(), key=lambda item: (len(item[0]), item[0])):
        # Without the names of their sections, which would say nothing here.
        yield f"[{mark}] {said({name.partition('.')[2]: value for name, value in recipe.items()})}."
    expanded = sorted({f"{r.config.pe} = {r.config.expansion}" for r in rows if r.config.pe != r.config.expansion})
    if expanded:
        yield f"{'; '.join(expanded)}."
    if not all(row.greedy for row in rows):
        yield f"{NO_GREEDY} scored by teacher forcing, which for this pair is not what greedy decoding would give."


def _horizons(table: Comparison) -> str:
    return (
        f"Horizon: the longest length with exact match ≥ {table.rows[0].threshold:g} there and at every tested length "
        "below, and its multiple of the longest trained; ≥ where no longer one was tested. Solved: holds so up to that "
        "length; seeds that failed or diverged count as not solved."
    )


def _seeds_of_all(rows: Sequence[Row]) -> str:
    counts = [", ".join(row.seeds_attempted) for row in rows]
    if len(set(counts)) == 1:
        return f"Seeds of each: {counts[0]}."
    return f"Seeds: {'; '.join(f'{row.label} {count}' for row, count in zip(rows, counts, strict=True))}."

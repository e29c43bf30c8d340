"""A grid as tables for the terminal, in further blocks where its columns do not fit the width."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from algolen import statistics
from algolen.report.colour import heat
from algolen.report.grid import Grid, Line
from algolen.report.text import NOT_TESTED, fraction, header, label_width, labelled, probability, spread

Cells = dict[tuple[int, float], tuple[list[str], Style | str]]
"""The texts and the style of every cell, by the number of the line and the column."""

NARROWEST = 8
"""Columns that names are given on however narrow a terminal."""


def blocks(grid: Grid, width: int) -> Iterator[Table]:
    """The grid in as many blocks as the width asks for, of about equal size."""
    if not grid.columns:
        return
    cells = {(number, x): _cell(line, x) for number, line in enumerate(grid.lines) for x in grid.columns}
    texts = [text for lines, _ in cells.values() for text in lines] + [header(x) for x in grid.columns]
    texts += [probability(value) for _, values in grid.baselines for value in values.values()]
    column = max(map(len, texts))
    # Names go on in further lines before a column is cut.
    label = min(label_width(grid), max(width - column - 5, NARROWEST))
    # Two regions at most begin within a block, and each costs a divider of two columns.
    fitting = max((width - label - 4) // (column + 1), 1)
    count = math.ceil(len(grid.columns) / fitting)
    size = math.ceil(len(grid.columns) / count)
    for start in range(0, len(grid.columns), size):
        yield _block(grid, slice(start, start + size), label, column, cells)


def _block(grid: Grid, part: slice, label: int, column: int, cells: Cells) -> Table:
    block = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    block.add_column(grid.corner, width=label, overflow="fold")
    layout = list(_with_dividers(grid.columns[part], grid.regions[part]))
    for x in layout:
        above = "│" if x is None else header(x).center(column)
        block.add_column(above, width=1 if x is None else column, no_wrap=True, header_style="bold")
    tall = any(len(lines) > 1 for lines, _ in cells.values())

    def add(name: Text, height: int, cell: Callable[[float], Text]) -> None:
        divider = Text("\n".join("│" * height), "dim")
        block.add_row(name, *(divider if x is None else cell(x) for x in layout))

    for number, line in enumerate(grid.lines):
        name = labelled(line.row)
        height = max(2 if tall else 1, len(name.wrap(Console(), label)))
        add(name, height, lambda x, number=number: _filled(*cells[number, x], column))  # type: ignore[misc]
    for title, values in grid.baselines:
        told = {x: probability(value) for x, value in values.items()}
        add(Text(title, "italic"), 1, lambda x, told=told: Text(told.get(x, NOT_TESTED).center(column), "italic"))  # type: ignore[misc]
    return block


def _with_dividers(columns: Sequence[float], regions: Sequence[int]) -> Iterator[float | None]:
    """Columns, with None before each further region; a block that begins in a later one says so."""
    before = min(regions[0], 0)
    for x, region in zip(columns, regions, strict=True):
        if region != before:
            yield None
        before = region
        yield x


def _cell(line: Line, x: float) -> tuple[list[str], Style | str]:
    values = line.values.get(x)
    if not values:
        return [NOT_TESTED], ""
    middle, seeds = statistics.median(values), len(line.row.seeds)
    texts = [fraction(middle)]
    if seeds > 1:
        texts.append(spread(values) if len(values) == seeds else f"{len(values)} of {seeds}")
    return texts, heat(middle)


def _filled(lines: Sequence[str], style: Style | str, width: int) -> Text:
    text = Text("\n".join(line.center(width) for line in lines))
    text.stylize(style)
    return text

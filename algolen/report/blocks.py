"""Exact match by length: encodings down, lengths across, in further blocks where they do not fit the width."""

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
from algolen.report.comparison import Comparison, Row
from algolen.report.text import NOT_TESTED, fraction, label_width, labelled, probability, spread

Cells = dict[tuple[str, int], tuple[list[str], Style | str]]
"""The lines and the style of every cell, by the row's label and the length."""


def length_blocks(table: Comparison, width: int) -> Iterator[Table]:
    """Exact match by length, in as many blocks as the width asks for, of about equal size."""
    lengths = table.lengths
    if not lengths:
        return
    cells = {(row.label, n): _cell(row, n) for row in table.rows for n in lengths}
    texts = [line for lines, _ in cells.values() for line in lines] + [str(n) for n in lengths]
    texts += [text for _, values in _baselines(table) for text in values.values()]
    column = max(map(len, texts))
    label = label_width(table)
    # Two regions at most begin within a block, and each costs a divider of two columns.
    fitting = max((width - label - 4) // (column + 1), 1)
    blocks = math.ceil(len(lengths) / fitting)
    size = math.ceil(len(lengths) / blocks)
    for start in range(0, len(lengths), size):
        yield _block(table, lengths[start : start + size], label, column, cells)


def _block(table: Comparison, lengths: Sequence[int], label: int, column: int, cells: Cells) -> Table:
    block = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    block.add_column("exact match at length", width=label, overflow="fold")
    layout = list(_with_dividers(lengths, table.train))
    for length in layout:
        header = "│" if length is None else f"{length}".center(column)
        block.add_column(header, width=1 if length is None else column, no_wrap=True, header_style="bold")
    tall = any(len(lines) > 1 for lines, _ in cells.values())

    def add(name: Text, height: int, cell: Callable[[int], Text]) -> None:
        divider = Text("\n".join("│" * height), "dim")
        block.add_row(name, *(divider if length is None else cell(length) for length in layout))

    for row in table.rows:
        name = labelled(row)
        height = max(2 if tall else 1, len(name.wrap(Console(), label)))
        add(name, height, lambda n, row=row: _filled(*cells[row.label, n], column))  # type: ignore[misc]
    for title, values in _baselines(table):
        add(Text(title, "italic"), 1, lambda n, v=values: Text(v.get(n, NOT_TESTED).center(column), "italic"))  # type: ignore[misc]
    return block


def _with_dividers(lengths: Sequence[int], train: tuple[int, int]) -> Iterator[int | None]:
    """Lengths, with None before each region (shorter, trained, longer) but the first; a block says where it is in."""
    before = 0 if lengths[0] >= train[0] else -1
    for length in lengths:
        region = (length >= train[0]) - 1 + (length > train[1])
        if region != before:
            yield None
        before = region
        yield length


def _cell(row: Row, length: int) -> tuple[list[str], Style | str]:
    values = row.at(length)
    if not values:
        return [NOT_TESTED], ""
    middle = statistics.median(values)
    lines = [fraction(middle)]
    if len(row.seeds) > 1:
        lines.append(spread(values) if len(values) == len(row.seeds) else f"{len(values)} of {len(row.seeds)}")
    return lines, heat(middle)


def _filled(lines: Sequence[str], style: Style | str, width: int) -> Text:
    text = Text("\n".join(line.center(width) for line in lines))
    text.stylize(style)
    return text


def _baselines(table: Comparison) -> list[tuple[str, dict[int, str]]]:
    named = (("chance", "chance"), ("best input-blind answer", "input_blind"))
    found = [(title, table.baseline(name)) for title, name in named]
    return [(title, {n: probability(v) for n, v in values.items()}) for title, values in found if values]

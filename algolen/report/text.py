"""How numbers and rows are written in a report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from algolen import statistics
from algolen.report.comparison import Row
from algolen.report.grid import Grid

LABEL_WIDTH = 26
NOT_TESTED = "·"
NO_GREEDY = "†"


def fraction(value: float) -> str:
    """Two decimals, cut and not rounded: 1.00 is every unit, and nothing below a threshold looks as if it met it."""
    if 0 < value < 0.01:
        return "<.01"
    return f"{math.floor(value * 100 + 1e-9) / 100:.2f}"


def header(column: float) -> str:
    """A length or the value of an axis above its column."""
    return str(int(column)) if column == int(column) else f"{column:g}"


def probability(value: float) -> str:
    """A baseline: two decimals, or its order of magnitude where that is all there is to say."""
    if value == 0:
        return "<1e-99"  # 10 to the minus length is below what a float holds
    return fraction(value) if value >= 0.01 else f"{value:.0e}"


def factor(value: float) -> str:
    """How many times the longest trained length: 2×, 1.25×."""
    return f"{value:.2f}".rstrip("0").rstrip(".") + "×"


def spread(values: Sequence[float]) -> str:
    """The range over seeds, as short as it can be said: .97–1."""
    low, high = (_short(fraction(value)) for value in statistics.value_range(values))
    return f"{low}–{high}" if low != high else f"all {low}"


def _short(text: str) -> str:
    return {"1.00": "1", "0.00": "0"}.get(text, text.removeprefix("0"))


def labelled(row: Row) -> Text:
    """A row's name and what tells it from others of that name, marked where greedy decoding could differ."""
    name = Text(row.name + ("" if row.greedy else NO_GREEDY))
    return name.append(row.label.removeprefix(row.name), "dim")


def label_width(grid: Grid) -> int:
    """How wide the column of names is; longer ones go on in a second line."""
    names = [labelled(line.row).plain for line in grid.lines]
    return min(LABEL_WIDTH, max(map(cell_len, [*names, "best input-blind answer"])))

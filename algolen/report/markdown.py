"""Comparisons as tables in Markdown, for notes, issues and READMEs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from algolen import statistics
from algolen.report.comparison import Comparison, Row
from algolen.report.grid import Grid, Line, families, grid
from algolen.report.tables import notes, title
from algolen.report.text import NO_GREEDY, NOT_TESTED, factor, fraction, header, probability, spread


def to_markdown(tables: Sequence[Comparison]) -> str:
    """A title, a table and notes for each comparison; cells are medians over seeds and, where they differ, a range."""
    return "\n\n".join("\n".join(_family(family)) for family in families(tables)) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table in Markdown; the first column is text, the others are centred."""
    for cells in (head, ["---", *[":-:"] * (len(head) - 1)], *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _family(family: Sequence[Comparison]) -> Iterator[str]:
    shown = grid(family)
    name, *parts = title(family)
    yield f"**{name}** · {' · '.join(parts)}"
    yield ""
    target = statistics.target_length(family[0].train)
    summary = ["horizon", f"solved at {target:,}", "seeds"] if len(family) == 1 else ["seeds"]
    rows = []
    for line in shown.lines:
        seeds = ", ".join(line.row.seeds_attempted)
        rows.append([*_cells(line, shown), *([*_summary(line.row), seeds] if len(family) == 1 else [seeds])])
    for name, values in shown.baselines:
        told = [probability(values[x]) if x in values else NOT_TESTED for x in shown.columns]
        rows.append([f"*{name}*", *told, *[""] * len(summary)])
    yield from table([shown.corner, *map(header, shown.columns), *summary], rows)
    yield ""
    for note in notes(family, shown, divided=False):
        yield f"- {note}"


def _cells(line: Line, shown: Grid) -> list[str]:
    name = f"{line.row.label}{'' if line.row.greedy else f' {NO_GREEDY}'}"
    return [name, *(_cell(line, x) for x in shown.columns)]


def _cell(line: Line, x: float) -> str:
    values = line.values.get(x)
    if not values:
        return NOT_TESTED
    told = fraction(statistics.median(values))
    if len(values) < len(line.row.seeds):
        return f"{told} ({len(values)} of {len(line.row.seeds)})"
    return told if len({fraction(value) for value in values}) == 1 else f"{told} ({spread(values)})"


def _summary(row: Row) -> list[str]:
    """Its horizon and the seeds that solve the target, with the interval."""
    horizon, solved = NOT_TESTED, NOT_TESTED
    if row.horizons:
        middle = statistics.median_horizon(row.horizons)
        horizon = str(middle) if middle.length is None else f"{middle} = {factor(middle.length / row.train[1])}"
    if row.solved is not None:
        low, high = statistics.wilson(*row.solved)
        solved = f"{row.solved[0]}/{row.solved[1]} ({low:.2f}–{high:.2f})"
    return [horizon, solved]

"""Comparisons as tables for the terminal: exact match by length, then what the seeds say.

Colour only repeats what the numbers say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from algolen import statistics
from algolen.report.blocks import length_blocks
from algolen.report.colour import heat
from algolen.report.comparison import Comparison, Row
from algolen.report.differences import said
from algolen.report.text import LABEL_WIDTH, NO_GREEDY, NOT_TESTED, factor, fraction, labelled, spread


def render(tables: Sequence[Comparison], width: int) -> Iterator[RenderableType]:
    """Everything a report shows of its comparisons, for a terminal of `width` columns."""
    for index, table in enumerate(tables):
        if index:
            yield ""
        yield _title(table)
        for block in length_blocks(table, width):
            yield ""
            yield block
        yield ""
        yield summary(table)
        yield ""
        for note in _notes(table):
            yield Text(note, "dim")


def _title(table: Comparison) -> Text:
    parts = [f"trained on lengths {table.train_lengths}"]
    if table.axis:
        parts.append(f"{table.axis} {table.axis_value:g}")
    if table.settings:
        parts.append(said(table.settings))
    return Text(table.task, "bold").append(" · " + " · ".join(parts), Style(bold=False))


def summary(table: Comparison) -> Table:
    """One row an encoding: in distribution, horizon and its factor, seeds that solve the target, seeds attempted."""
    target = statistics.target_length(table.train)
    found = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    # Where the width is short, names go on in further lines; numbers are never cut.
    found.add_column("over seeds", max_width=LABEL_WIDTH, overflow="fold")
    for header in ("trained\nlengths", "horizon", f"solved\nat {target:,}", "Wilson\n95 %", "seeds"):
        found.add_column(header, no_wrap=True)
    for row in table.rows:
        found.add_row(labelled(row), _in_distribution(row), _horizon(row), *_solved(row), _seeds(row))
    return found


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


def _seeds(row: Row) -> str:
    lost = Counter(run.status for run in row.lost)
    return "\n".join([str(row.attempted), *(f"{count} {status}" for status, count in sorted(lost.items()))])


def _notes(table: Comparison) -> Iterator[str]:
    examples = f"{table.examples:,} examples a length, " if table.examples else ""
    seeds = max((len(row.seeds) for row in table.rows), default=0)
    ranged = "; median over seeds, below it their range" if seeds > 1 else ""
    yield f"Exact match: every token of an answer (or read) right; {examples}fractions cut to two decimals{ranged}."
    yield (
        f"│ parts trained lengths ({table.train[0]:,} to {table.train[1]:,}) from others. Horizon: the longest length "
        f"with exact match ≥ {table.rows[0].threshold:g} there and at every tested length below, and its multiple of "
        "the longest trained; ≥ where no longer one was tested. Solved: holds so up to that length; seeds that failed "
        "or diverged count as not solved."
    )
    for mark, recipe in table.recipes.items():
        # Without the names of their sections, which would say nothing here.
        yield f"[{mark}] {said({name.partition('.')[2]: value for name, value in recipe.items()})}."
    expanded = sorted(
        {f"{r.config.pe} = {r.config.expansion}" for r in table.rows if r.config.pe != r.config.expansion}
    )
    if expanded:
        yield f"{'; '.join(expanded)}."
    if not all(row.greedy for row in table.rows):
        yield f"{NO_GREEDY} scored by teacher forcing, which for this pair is not what greedy decoding would give."

"""What `tasks`, `encodings` and `sample` have in common: texts and options read off the classes, and their printing."""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from algolen.pairing import Pairing
    from algolen.presets import Recipe

MARGIN = 16
"""Where the texts of facts begin."""


def first_paragraph(cls: type) -> str:
    """The first paragraph of a class's docstring, on one line."""
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())


def first_source(source: str) -> str:
    """The authors and year of the first publication of a source."""
    return re.split("[,;]", source)[0]


def by_pairing(found: Sequence[Pairing], other: str) -> list[dict[str, Any]]:
    """What comes of each pairing, as plain values; `other` ("task" or "encoding") is the one that goes by its name."""
    return [
        {
            other: getattr(pairing, other),
            "greedy": pairing.outcome.greedy,
            "reason": pairing.outcome.reason,
            "changed_by": [
                {"settings": list(settings), "greedy": outcome.greedy, "reason": outcome.reason}
                for settings, outcome in pairing.changes
            ],
        }
        for pairing in found
    ]


def by_recipe(found: Sequence[Recipe]) -> list[dict[str, Any]]:
    """Published recipes as plain values; `--preset` takes their names."""
    return [
        {
            "name": recipe.name,
            "tasks": list(recipe.tasks),
            "encodings": list(recipe.encodings),
            "source": recipe.source,
            "status": recipe.status,
        }
        for recipe in found
    ]


def greedy_facts(pairs: Sequence[dict[str, Any]], other: str) -> dict[str, list[str]]:
    """The lines that say with which tasks or encodings exact match equals greedy decoding's, and which are refused."""
    lines: dict[str, list[str]] = {"greedy": [], "refused": []}
    greedy = [pair[other] for pair in pairs if pair["greedy"] == "yes"]
    if greedy:
        lines["greedy"].append(f"yes with {', '.join(greedy)}")
    for pair in pairs:
        if pair["greedy"] == "no":
            lines["greedy"].append(f"no with {pair[other]}: {pair['reason']}")
        elif pair["greedy"] == "refused":
            lines["refused"].append(f"{pair[other]}: {pair['reason']}")
    told_by = Counter(_told(change) for pair in pairs for change in pair["changed_by"])
    everywhere = [told for told, count in told_by.items() if count > 1 and told[1] == "refused" and told[2]]
    lines["refused"] += [f"all where {' and '.join(settings)}: {reason}" for settings, _, reason in everywhere]
    for pair in pairs:
        for change in pair["changed_by"]:
            if _told(change) in everywhere:
                continue
            where = f"{pair[other]} where {' and '.join(change['settings'])}"
            told = f"{where}: {change['reason']}" if change["reason"] else where
            if change["greedy"] == "refused":
                lines["refused"].append(told)
            else:
                lines["greedy"].append(f"{change['greedy']} with {told}")
    return {name: told for name, told in lines.items() if told}


def _told(change: Mapping[str, Any]) -> tuple[tuple[str, ...], str, str]:
    """What tells changes apart, but for whom they concern."""
    return tuple(change["settings"]), change["greedy"], change["reason"] or ""


def print_rows(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[Sequence[str]], right: str
) -> None:
    """A table, with notes under each row that are wrapped and indented; `right` names the columns of numbers."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    sides = ["rjust" if column in right.split(", ") else "ljust" for column in columns]
    lines = [
        "  ".join(getattr(cell, side)(width) for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    ]
    console.print(lines[0], style="bold", markup=False, soft_wrap=True)
    for line, told in zip(lines[1:], notes, strict=True):
        console.print(line, markup=False, soft_wrap=True)
        for note in told:
            print_wrapped(console, note, indent=2, style="dim")


def print_facts(console: Console, facts: Mapping[str, str | Sequence[str]]) -> None:
    """Names and texts, a line for each text, long ones wrapped under their beginning."""
    for name, texts in facts.items():
        for number, text in enumerate([texts] if isinstance(texts, str) else texts):
            label = "" if number else name
            print_wrapped(console, text, indent=MARGIN, first=f"  {label:<{MARGIN - 3}} ")


def print_wrapped(
    console: Console, text: str, indent: int = 0, first: str | None = None, style: str | None = None
) -> None:
    """A text in lines that fit the console, indented; the first line begins with `first` instead."""
    wrapped = textwrap.fill(
        text,
        max(console.width, indent + 20),
        initial_indent=" " * indent if first is None else first,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    console.print(wrapped, style=style, markup=False, soft_wrap=True)


def print_aligned(console: Console, rows: Mapping[str, Sequence[Any]]) -> None:
    """Named rows of cells under each other, None for an empty one, cut into blocks where the terminal is too narrow.
    Rows that are empty in a block are left out of it, but for the first."""
    texts = {name: ["" if cell is None else _cell(cell) for cell in cells] for name, cells in rows.items()}
    margin = max(map(len, texts)) + 2
    widths = [max(map(len, cells)) + 1 for cells in zip(*texts.values(), strict=True)]
    for start, stop in _even_blocks(widths, console.width - margin):
        for number, (name, cells) in enumerate(texts.items()):
            if number == 0 or any(cells[start:stop]):
                line = "".join(cells[place].rjust(widths[place]) for place in range(start, stop))
                console.print(f"{name:<{margin}}{line}".rstrip(), markup=False, soft_wrap=True)
        console.print()


def _even_blocks(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """As few blocks as there can be, none wider than the room unless it is a single cell, and about alike."""
    blocks = _blocks(widths, room)
    while room > 0 and len(closer := _blocks(widths, room - 1)) == len(blocks):
        room, blocks = room - 1, closer
    return blocks


def _blocks(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Where each block starts and stops if every one takes as many cells as it can."""
    starts, left = [0], room
    for place, width in enumerate(widths):
        left -= width
        if left < 0 and place > starts[-1]:
            starts.append(place)
            left = room - width
    return list(itertools.pairwise([*starts, len(widths)]))


def _cell(cell: Any) -> str:
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def print_options(console: Console, section: str, options: list[dict[str, Any]]) -> None:
    """The options of a section as a table."""
    from rich.table import Table

    if not options:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("option", no_wrap=True)
    for column in ("default", "values", "what it does"):
        table.add_column(column, overflow="fold")
    for option in options:
        default = "none" if option["default"] is None else str(option["default"]).replace("True", "true")
        default = default.replace("False", "false")
        table.add_row(f"{section}.{option['name']}", default, option["type"], option["description"])
    console.print()
    console.print(table)

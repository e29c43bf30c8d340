"""What `tasks` and `encodings` have in common: texts and options read off the classes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from algolen.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from algolen.task import Task


def first_paragraph(cls: type) -> str:
    """The first paragraph of a class's docstring, on one line."""
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())


def nearest_length(task: Task, wanted: int) -> int:
    """The nominal length a task has that is nearest to one, longer ones first."""
    candidates: list[int] = [*range(wanted, wanted + 100), *range(wanted - 1, 1, -1)]
    for length in candidates:
        try:
            task.check_length(length)
        except UserError:
            continue
        return length
    return 1


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

"""`algolen encodings`: how positions can be told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Plugins
from algolen.cli.describe import first_paragraph, print_options

WIDE = 100
"""Columns of a terminal from which on papers are named in the list; `algolen encodings NAME` names them always."""

UNSURE = "†"

if TYPE_CHECKING:
    from algolen.encodings.base import Encoding
    from algolen.registry import Registry


def encodings(
    name: Annotated[str, typer.Argument(help="An encoding to describe in full.")] = "",
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """List the position encodings, or describe one. Join them with +, as in offset+learned."""
    found = common.registry(plugin)
    wanted = [found.encoding(name)] if name else [found.encodings[known] for known in sorted(found.encodings)]
    described = [describe(cls, found) for cls in wanted]
    if as_json:
        common.print_json(described[0] if name else described)
    elif name:
        _print_one(described[0])
    else:
        _print_table(described)


def describe(cls: type[Encoding], registry: Registry) -> dict[str, Any]:
    """What is known about an encoding, at its default options, as plain values."""
    from dataclasses import asdict

    from algolen import options
    from algolen.encodings.base import Shape
    from algolen.encodings.expression import parse
    from algolen.initialisation import Initialiser

    alone = parse(cls.name, registry.encoding, {})
    own = next(member for member in alone.members if member.cls is cls)
    built = alone.build(Shape(layers=2, width=128, heads=4), Initialiser(0))
    return {
        "name": cls.name,
        "version": cls.version,
        "kind": cls.kind,
        "summary": first_paragraph(cls),
        "paper": cls.paper,
        "status": cls.status,
        "needs": sorted(cls.needs),
        "attention": "causal" if cls.causal_only else "causal or bidirectional",
        "alone_means": alone.expansion,
        "largest_id": cls.ceiling(own.options),
        "parameters_added": sum(parameter.numel() for parameter in built.parameters()),
        "fused_attention": not built.touches_logits,
        "options": [asdict(option) for option in options.describe(cls.Options)],
    }


def _print_table(described: list[dict[str, Any]]) -> None:
    from rich.table import Table

    console = common.console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("encoding", "kind", "alone means", "needs", "largest id", "parameters"):
        table.add_column(column, justify="right" if column in ("largest id", "parameters") else "left", no_wrap=True)
    if console.width >= WIDE:
        table.add_column("paper", no_wrap=True)
    for pe in described:
        ceiling = "–" if pe["largest_id"] is None else f"{pe['largest_id']:,}"
        cells = (
            pe["name"] + ("" if pe["status"] == "published" else UNSURE),
            pe["kind"],
            pe["alone_means"] if pe["alone_means"] != pe["name"] else "",
            ", ".join(pe["needs"]),
            ceiling,
            f"{pe['parameters_added']:,}",
            re.split("[,;]", pe["paper"])[0],
        )
        table.add_row(*cells[: len(table.columns)])
    console.print(table)
    unsure = [f"{UNSURE} {pe['name']}: {pe['status']}" for pe in described if pe["status"] != "published"]
    notes = ["parameters: added to a model of 2 layers, width 128 and 4 heads", *unsure]
    console.print(f"\n{'; '.join(notes)}.", style="dim")


def _print_one(pe: dict[str, Any]) -> None:
    console = common.console()
    console.print(f"[bold]{pe['name']}[/bold]  {pe['kind']}, version {pe['version']}, {pe['status']}  {pe['paper']}")
    console.print(pe["summary"])
    facts = {
        "alone means": pe["alone_means"],
        "needs": ", ".join(pe["needs"]) or "nothing from the task",
        "attention": pe["attention"] + (", fused kernel" if pe["fused_attention"] else ", plain matrix products"),
        "largest id": "no limit" if pe["largest_id"] is None else f"{pe['largest_id']:,}",
        "parameters": f"{pe['parameters_added']:,} added to a model of 2 layers, width 128 and 4 heads",
    }
    for name, text in facts.items():
        console.print(f"  {name:<13} {text}", markup=False)
    print_options(console, pe["name"], pe["options"])

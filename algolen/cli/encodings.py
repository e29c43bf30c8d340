"""`algolen encodings`: how positions can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Plugins
from algolen.cli.describe import (
    by_pairing,
    by_recipe,
    first_paragraph,
    first_source,
    greedy_facts,
    print_facts,
    print_options,
    print_rows,
    print_wrapped,
)

WIDE = 112
"""Columns of a terminal from which on a row has room for status and paper; else they stand under it."""

MODEL = "a model of 2 layers, width 128 and 4 heads"

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

    from algolen import options, pairing, presets
    from algolen.encodings.base import Shape
    from algolen.encodings.expression import parse
    from algolen.initialisation import Initialiser

    alone = parse(cls.name, registry.encoding, {})
    own = next(member for member in alone.members if member.cls is cls)
    built = alone.build(Shape(layers=2, width=128, heads=4), Initialiser(0))
    pairings = pairing.pairings(registry, encoding=cls.name)
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
        "reads_ids": cls.reads_ids,
        "maps_ids": cls.maps_ids,
        "draws_at_test": cls.draws_at_test,
        "greedy": pairing.summary(pairings),
        "tasks": by_pairing(pairings, "task"),
        "recipes": by_recipe(presets.for_encoding(cls.name, registry)),
        "options": [asdict(option) for option in options.describe(cls.Options)],
    }


def _print_table(described: list[dict[str, Any]]) -> None:
    console = common.console()
    columns = ["encoding", "kind", "needs", "greedy", "largest id", "parameters"]
    rows = [
        [
            pe["name"] + pe["alone_means"].replace(pe["name"], "").replace("+", " +"),
            pe["kind"],
            ", ".join(pe["needs"]),
            pe["greedy"],
            "–" if pe["largest_id"] is None else f"{pe['largest_id']:,}",
            f"{pe['parameters_added']:,}",
        ]
        for pe in described
    ]
    further = [[pe["status"], first_source(pe["paper"])] for pe in described]
    wide = console.width >= WIDE
    print_rows(
        console,
        [*columns, "status", "paper"] if wide else columns,
        [[*row, *more] for row, more in zip(rows, further, strict=True)] if wide else rows,
        [[] if wide else [f"{paper}, {status}"] for status, paper in further],
        right="largest id, parameters",
    )
    console.print()
    for note in (
        "encoding: what stands after + joins where nothing else reads the ids.",
        "greedy: whether exact match equals greedy decoding's, by the tasks that go with it and their options; "
        "`algolen encodings NAME` says where.",
        f"parameters: added to {MODEL}.",
    ):
        print_wrapped(console, note, style="dim")


def _print_one(pe: dict[str, Any]) -> None:
    console = common.console()
    console.print(f"[bold]{pe['name']}[/bold]  {pe['kind']}, version {pe['version']}, {pe['status']}", soft_wrap=True)
    print_wrapped(console, pe["paper"])
    print_wrapped(console, pe["summary"])
    print_facts(
        console,
        {
            "alone means": pe["alone_means"],
            "needs": ", ".join(pe["needs"]) or "nothing from the task",
            "attention": pe["attention"] + (", fused kernel" if pe["fused_attention"] else ", plain matrix products"),
            "position ids": _ids(pe),
            "largest id": "no limit" if pe["largest_id"] is None else f"{pe['largest_id']:,}",
            "parameters": f"{pe['parameters_added']:,} added to {MODEL}",
            **greedy_facts(pe["tasks"], "task"),
            "recipes": [f"{one['name']}: {', '.join(one['tasks'])}" for one in pe["recipes"]],
        },
    )
    print_options(console, pe["name"], pe["options"])


def _ids(pe: dict[str, Any]) -> str:
    if not pe["maps_ids"]:
        return "reads them" if pe["reads_ids"] else "does not look at them"
    return "makes them, drawn at test too" if pe["draws_at_test"] else "makes them"

"""`algolen settings`: what --set and a TOML file can set."""

from __future__ import annotations

from typing import Annotated

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Plugins
from algolen.cli.describe import print_options


def settings(
    section: Annotated[
        str, typer.Argument(help="model, train, a task or an encoding.  [default: model and train]")
    ] = "",
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> None:
    """List what can be set: the model and its training, or the options of a task or an encoding."""
    from dataclasses import asdict

    from algolen import options
    from algolen.config import SECTION_CLASSES
    from algolen.errors import unknown

    classes = dict(SECTION_CLASSES)
    if section not in ("", *classes):
        found = common.registry(plugin)
        classes = {**found.tasks, **{name: cls.Options for name, cls in found.encodings.items()}}
        if section not in classes:
            raise unknown("section", section, (*SECTION_CLASSES, *classes))
    wanted = [section] if section else list(classes)
    described = {name: [asdict(option) for option in options.describe(classes[name])] for name in wanted}
    if as_json:
        common.print_json(described)
        return
    for name, own in described.items():
        if not own:
            common.console().print(f"{name} has no options")
        print_options(common.console(), name, own)

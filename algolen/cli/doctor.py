"""`algolen doctor`: what is installed here, and whether it works together."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from algolen import __version__
from algolen.cli import common
from algolen.cli.common import AsJson, Database
from algolen.errors import UserError

PACKAGES = ("torch", "numpy", "typer", "rich", "pydantic", "safetensors", "sqlite-utils", "wandb")


def doctor(db: Database = common.DATABASE, as_json: AsJson = False) -> int:
    """Show versions, devices and the state of the database; exit 1 if something needs attention."""
    facts, troubles = _facts(db)
    if as_json:
        common.print_json({**facts, "troubles": troubles})
    else:
        console = common.console()
        for name, value in facts.items():
            console.print(f"[dim]{name:>14}[/dim]  {value}", soft_wrap=True)
        for trouble in troubles:
            console.print(f"[bold red]{'trouble':>14}[/bold red]  {trouble}", soft_wrap=True)
        console.print(f"{'':>14}  {'nothing to complain about' if not troubles else ''}".rstrip())
    return 1 if troubles else 0


def _facts(db: Path) -> tuple[dict[str, Any], list[str]]:
    import torch

    facts: dict[str, Any] = {"algolen": __version__, "python": platform.python_version()}
    facts.update({name: _version(name) for name in PACKAGES})
    facts["platform"] = platform.platform()
    facts["cores"] = os.cpu_count()
    facts["cuda"] = ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())) or "none"
    facts["mps"] = "yes" if torch.backends.mps.is_available() else "none"
    facts["auto device"] = str(common.find_device("auto"))
    database, troubles = _database(db)
    troubles += [f"{name} is not installed" for name in PACKAGES if facts[name] == "missing"]
    return {**facts, **database}, troubles


def _database(db: Path) -> tuple[dict[str, Any], list[str]]:
    from algolen.store import Store, filesystem_type, on_network

    folder = db.absolute().parent
    facts: dict[str, Any] = {"database": str(db), "file system": filesystem_type(folder)}
    troubles = []
    if on_network(folder):
        troubles.append(f"{db} is on a network file system: keep few writers, it has no write-ahead log there")
    if not db.exists():
        facts["runs"] = "no database yet; `algolen train` makes one"
        if not folder.is_dir():
            troubles.append(f"no folder {db.parent} to put the database {db.name} in")
        elif not os.access(folder, os.W_OK):
            troubles.append(f"the folder {db.parent} cannot be written to")
        return facts, troubles
    try:
        with Store.open(db) as store:
            runs = store.runs()
    except UserError as error:
        return facts, [*troubles, str(error)]
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.status] = counts.get(run.status, 0) + 1
    facts["runs"] = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items())) or "none"
    return facts, troubles


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"

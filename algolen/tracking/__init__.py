"""Logging to W&B, off unless asked for.

The database is where results are kept; W&B is a window on them. Whatever becomes of it, training goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from algolen.errors import UserError, unknown

MODES = ("off", "offline", "online")
PROJECT = "algolen"

_NOT_IN_A_PROJECT = "/\\#?%:"
_LONGEST_PROJECT = 128


@dataclass(frozen=True)
class Destination:
    """Where the log of a run goes: offline into `folder`/wandb, online there and to the project of that name."""

    mode: str
    project: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.mode}, project {self.project}, in {self.folder / 'wandb'}"


def destination(mode: str, project: str | None, folder: Path) -> Destination | None:
    """What --wandb and --wandb-project ask for; None for off. Raises UserError for what W&B would not take."""
    if mode not in MODES:
        raise unknown("mode of --wandb", mode, MODES)
    if mode == "off":
        if project is not None:
            raise UserError("--wandb-project does nothing while W&B is off; add --wandb offline or --wandb online")
        return None
    name = PROJECT if project is None else project
    bad = [character for character in _NOT_IN_A_PROJECT if character in name]
    if bad or not 0 < len(name) <= _LONGEST_PROJECT or not name.isprintable():
        why = f"has no place for {' '.join(bad)}" if bad else f"has 1 to {_LONGEST_PROJECT} printable characters"
        raise UserError(f"--wandb-project {name!r}: the name of a W&B project {why}")
    return Destination(mode, name, folder)

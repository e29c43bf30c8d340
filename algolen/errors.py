"""Errors that are answers to the user: one clear line, exit code 2, nothing written."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user asked for cannot be done; the message says what, and the nearest thing that can."""


class Refusal(UserError):
    """A combination of task, encoding and lengths that would not mean anything, with the reason."""


class Diverged(Exception):
    """A training loss that is no longer a number.

    `step` is the first step (counted from 1) whose loss was NaN or infinite.
    """

    def __init__(self, step: int) -> None:
        super().__init__(f"the loss was not finite at step {step:,}")
        self.step = step


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a mistyped one most likely meant, if any is close."""
    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that is not known: names the nearest one, or lists them where none is near."""
    names = sorted(known)
    close = nearest(name, names)
    if close is not None:
        return UserError(f"unknown {kind} '{name}'; did you mean '{close}'?")
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return UserError(f"unknown {kind} '{name}'; known: {shown or 'none'}")

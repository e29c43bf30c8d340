"""Lengths as users write them: `1-20`, `5:40:5` (both ends included), `5,10,20`, and any of these joined by commas."""

from __future__ import annotations

import re
from collections.abc import Sequence

from algolen.errors import UserError

LARGEST = 1_000_000
MOST_SEEDS = 10_000


def parse(text: str, what: str) -> tuple[int, ...]:
    """The lengths a text names, in increasing order, each once.

    Raises UserError, naming `what` was being read, for anything that is not a length or a range of them.
    """
    found: set[int] = set()
    for part in text.split(","):
        found.update(_range(part.strip(), text, what))
    return tuple(sorted(found))


def _range(part: str, text: str, what: str) -> range:
    match = re.fullmatch(r"(\d+)(?:-(\d+)|:(\d+)(?::(\d+))?)?", part)
    if match is None:
        raise UserError(f"{what} '{text}' is not a range of lengths; write 1-20, 5:40:5 or 5,10,20")
    first = int(match[1])
    last = int(match[2] or match[3] or first)
    step = int(match[4] or 1)
    if first < 1:
        raise UserError(f"{what} '{text}' starts below 1; lengths count from 1")
    if last < first:
        raise UserError(f"{what} '{text}' runs backwards; did you mean '{last}{part[len(match[1])]}{first}'?")
    if step < 1:
        raise UserError(f"{what} '{text}' has a step of 0; did you mean '{first}:{last}'?")
    if last > LARGEST:
        raise UserError(f"{what} '{text}' goes beyond {LARGEST:,}, the longest length there is")
    return range(first, last + 1, step)


def seeds(text: str) -> tuple[int, ...]:
    """Seeds as users write them; like lengths, but they count from 0."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,15})(?:-(\d{1,15}))?\s*", part)
        if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
            raise UserError(f"--seeds '{text}' is not a list of seeds; write 0, 0-4 or 0,2,5")
        named = range(int(match[1]), int(match[2] or match[1]) + 1)
        if len(found) + len(named) > MOST_SEEDS:
            raise UserError(f"--seeds '{text}' names more than {MOST_SEEDS:,} seeds")
        found.update(named)
    return tuple(sorted(found))


def show(lengths: Sequence[int]) -> str:
    """The shortest text that `parse` reads back."""
    parts: list[str] = []
    rest = list(lengths)
    while rest:
        step = rest[1] - rest[0] if len(rest) > 1 else 1
        count = 1
        while count < len(rest) and rest[count] - rest[count - 1] == step:
            count += 1
        if count < 3:
            parts.append(str(rest.pop(0)))
            continue
        parts.append(f"{rest[0]}-{rest[count - 1]}" if step == 1 else f"{rest[0]}:{rest[count - 1]}:{step}")
        del rest[:count]
    return ",".join(parts)

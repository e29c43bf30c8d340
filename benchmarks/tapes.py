"""Which nominal lengths of a task go on a tape."""

from __future__ import annotations

from algolen.errors import UserError
from algolen.task import Task


def lengths_within(task: Task, tape: int) -> list[int]:
    """The nominal lengths of a task up to `tape` + 1 that take at most `tape` tokens, shortest first."""
    return [length for length in range(1, tape + 2) if _has(task, length) and task.tape_length(length) <= tape]


def _has(task: Task, length: int) -> bool:
    try:
        task.check_length(length)
    except UserError:
        return False
    return True

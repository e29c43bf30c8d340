"""Which tasks and encodings go together, and where one teacher-forced pass equals greedy decoding."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from algolen import lengths, options
from algolen.encodings.expression import Expression, parse
from algolen.errors import UserError
from algolen.registry import Registry
from algolen.task import Task

T = TypeVar("T")
Setting = tuple[str, str, options.Value]
Changed = list[tuple[frozenset[Setting], T]]

TYPICAL = 10
"""The nominal length at which tasks are described and combinations are tried."""

MOST_CHANGES = 2
"""How many options are changed at once in search of those that matter."""


@dataclass(frozen=True)
class Outcome:
    """What comes of a task with an encoding: exact match that equals greedy decoding's (yes), one that does not (no),
    or a refusal; with the reason unless it is yes."""

    greedy: Literal["yes", "no", "refused"]
    reason: str | None = None


@dataclass(frozen=True)
class Pairing:
    """A task and an encoding, alone and both at their defaults, at length `TYPICAL`.

    changes: the smallest sets of settings (`section.option=value`), of options that have few values, that lead to
    another kind of outcome, each with that outcome.
    """

    task: str
    encoding: str
    outcome: Outcome
    changes: tuple[tuple[tuple[str, ...], Outcome], ...] = ()

    @property
    def usable(self) -> bool:
        return self.outcome.greedy != "refused"


def pairings(registry: Registry, task: str | None = None, encoding: str | None = None) -> list[Pairing]:
    """All pairs of a task and an encoding, or those of one of them, in the order of their names."""
    tasks = [registry.task(task)] if task else [registry.tasks[name] for name in sorted(registry.tasks)]
    encodings = [encoding] if encoding else sorted(registry.encodings)
    made_tasks = {cls.name: list(_tasks(cls)) for cls in tasks}
    made_encodings = {name: list(_expressions(name, registry)) for name in encodings}
    return [
        _pairing(one, other, made_tasks[one], made_encodings[other])
        for one, other in itertools.product(made_tasks, made_encodings)
    ]


def summary(found: list[Pairing]) -> str:
    """Whether the pairings are greedy, in a word or two: yes, no, by task, by options, – where none can be used."""
    usable = [pairing for pairing in found if pairing.usable]
    kinds = {pairing.outcome.greedy for pairing in usable}
    if not usable:
        return "–"
    if len(kinds) > 1:
        return "by task"
    reached = {outcome.greedy for pairing in usable for _, outcome in pairing.changes if outcome.greedy != "refused"}
    return "by options" if reached - kinds else kinds.pop()


def nearest_length(task: Task, wanted: int) -> int:
    """The nominal length a task has that is nearest to one, longer ones first."""
    first = max(wanted, task.smallest_length)
    candidates: list[int] = [*range(first, first + 100), *range(first - 1, 1, -1)]
    return next((length for length in candidates if has_length(task, length)), 1)


def has_length(task: Task, length: int) -> bool:
    """Whether the task has examples of that nominal length."""
    try:
        task.check_length(length)
    except UserError:
        return False
    return length <= lengths.LARGEST


def _pairing(task: str, encoding: str, tasks: Changed[Task], encodings: Changed[Expression]) -> Pairing:
    combined = sorted(itertools.product(tasks, encodings), key=lambda pair: len(pair[0][0]) + len(pair[1][0]))
    default = _outcome(tasks[0][1], encodings[0][1])
    changes: dict[frozenset[Setting], Outcome] = {}
    for (task_settings, made), (pe_settings, expression) in combined:
        settings = task_settings | pe_settings
        if len(settings) > MOST_CHANGES or any(smaller <= settings for smaller in changes):
            continue
        outcome = _outcome(made, expression)
        if outcome.greedy != default.greedy:
            changes[settings] = outcome
    shown = tuple((tuple(sorted(map(_written, settings))), outcome) for settings, outcome in changes.items())
    return Pairing(task, encoding, default, shown)


def _outcome(task: Task, expression: Expression) -> Outcome:
    try:
        expression.check(task, (nearest_length(task, TYPICAL),), task.layout.causal)
    except UserError as error:
        return Outcome("refused", str(error))
    reason = expression.not_greedy(task)
    return Outcome("yes") if reason is None else Outcome("no", reason)


def _tasks(cls: type[Task]) -> Iterator[tuple[frozenset[Setting], Task]]:
    """The task at its defaults, and with up to `MOST_CHANGES` options changed."""
    for settings in _changes({cls.name: cls}):
        try:
            yield settings, options.read(cls, {name: value for _, name, value in settings}, cls.name)
        except UserError:
            continue


def _expressions(name: str, registry: Registry) -> Iterator[tuple[frozenset[Setting], Expression]]:
    """The encoding alone at its defaults, and with up to `MOST_CHANGES` options changed."""
    alone = parse(name, registry.encoding, {})
    for settings in _changes({member.cls.name: member.cls.Options for member in alone.members}):
        sections: dict[str, dict[str, Any]] = {}
        for section, option, value in settings:
            sections.setdefault(section, {})[option] = value
        try:
            yield settings, parse(name, registry.encoding, sections)
        except UserError:
            continue


def _changes(sections: Mapping[str, type]) -> Iterator[frozenset[Setting]]:
    """No change, every other value of one option that has few, and of two of them."""
    single = [
        (section, name, value)
        for section, cls in sections.items()
        for name, values in options.choices(cls).items()
        for value in values
    ]
    for count in range(MOST_CHANGES + 1):
        for settings in itertools.combinations(single, count):
            if len({(section, name) for section, name, _ in settings}) == count:
                yield frozenset(settings)


def _written(setting: Setting) -> str:
    section, name, value = setting
    return f"{section}.{name}={str(value).lower() if isinstance(value, bool) else value}"

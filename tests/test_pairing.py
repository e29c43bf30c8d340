"""Which tasks and encodings go together, against every combination of their options."""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from algolen import options, pairing
from algolen.encodings.base import Encoding
from algolen.encodings.expression import Expression
from algolen.errors import UserError
from algolen.pairing import Outcome, Pairing
from algolen.registry import Registry
from algolen.task import Layout, Task
from tests import building

FOUND = pairing.pairings(building.REGISTRY)
every_pairing = pytest.mark.parametrize("found", FOUND, ids=lambda found: f"{found.task}-{found.encoding}")


def kind(task: Task, pe: Expression) -> str:
    """What comes of a combination, by the functions that a run asks."""
    length = next(length for length in itertools.chain(range(10, 50), range(9, 0, -1)) if has(task, length))
    try:
        pe.check(task, (length,), task.layout.causal)
    except UserError:
        return "refused"
    return "yes" if pe.not_greedy(task) is None else "no"


def has(task: Task, length: int) -> bool:
    try:
        task.check_length(length)
    except UserError:
        return False
    return True


def few(section: str, cls: Any) -> list[list[str]]:
    """For every option of few values, each of them as a setting."""
    hints = typing.get_type_hints(cls)
    values = {
        field.name: ("false", "true") if hints[field.name] is bool else typing.get_args(hints[field.name])
        for field in dataclasses.fields(cls)
        if hints[field.name] is bool or typing.get_origin(hints[field.name]) is typing.Literal
    }
    return [[f"{section}.{name}={value}" for value in own] for name, own in values.items()]


def combinations(found: Pairing) -> Iterator[tuple[set[str], Task, Expression]]:
    """Every combination of all options of few values, with its settings."""
    alone = building.expression(found.encoding)
    sections = {found.task: building.REGISTRY.task(found.task)}
    sections |= {member.cls.name: member.cls.Options for member in alone.members}
    for settings in itertools.product(*(own for section, cls in sections.items() for own in few(section, cls))):
        asked: dict[str, dict[str, Any]] = {}
        for setting in settings:
            section, name, value = setting.replace("=", ".", 1).split(".", 2)
            asked.setdefault(section, {})[name] = value
        try:
            task = building.task(found.task, **asked.pop(found.task, {}))
        except UserError:
            continue
        yield set(settings), task, building.expression(found.encoding, **asked)


def test_every_task_is_paired_with_every_encoding() -> None:
    pairs = {(found.task, found.encoding) for found in FOUND}
    assert pairs == set(itertools.product(building.REGISTRY.tasks, building.REGISTRY.encodings))
    assert len(pairs) == len(FOUND)


@every_pairing
def test_a_pairing_says_what_a_run_of_the_two_would_find(found: Pairing) -> None:
    task, pe = building.task(found.task), building.expression(found.encoding)
    assert found.outcome.greedy == kind(task, pe)
    if found.usable:
        assert found.outcome.reason == pe.not_greedy(task)
    else:
        with pytest.raises(UserError) as refused:
            pe.check(task, (pairing.nearest_length(task, 10),), task.layout.causal)
        assert found.outcome.reason == str(refused.value)


@every_pairing
def test_whatever_the_options_the_outcome_is_foretold_by_the_changes(found: Pairing) -> None:
    for settings, task, pe in combinations(found):
        reached = [outcome.greedy for changed, outcome in found.changes if set(changed) <= settings]
        assert kind(task, pe) == (reached[-1] if reached else found.outcome.greedy), settings


def test_coupling_is_not_greedy_where_it_betrays_the_length_of_a_plain_answer() -> None:
    (found,) = pairing.pairings(building.REGISTRY, "addition", "coupling")
    assert found.outcome == Outcome("yes")
    assert found.changes == (
        (
            ("addition.padded=false", "addition.reverse_answer=false"),
            Outcome("no", "coupled ids betray the answer's length"),
        ),
    )


class Filled(building.REGISTRY.task("copy")):  # type: ignore[misc]
    name = "filled"
    layout = Layout.SLOTS


class Telling(Encoding):
    """Gives answers away unless it is quiet."""

    name, kind, paper = "telling", "none", "a test"

    @dataclasses.dataclass(frozen=True)
    class Options:
        quiet: bool = True

    @classmethod
    def reveals_answer(cls, options: Any, task: Task) -> str | None:
        return None if options.quiet else "it tells"


def test_options_of_encodings_and_layouts_of_tasks_count_too() -> None:
    copy = building.REGISTRY.task("copy")
    known = Registry({"copy": copy, "filled": Filled}, {"telling": Telling, "nope": building.REGISTRY.encoding("nope")})
    found = {(one.task, one.encoding): one for one in pairing.pairings(known)}
    assert found["copy", "telling"].changes == ((("telling.quiet=false",), Outcome("no", "it tells")),)
    assert found["filled", "telling"].outcome == Outcome("no", "all answer slots are filled at once")
    assert not found["filled", "nope"].usable
    assert pairing.summary(pairing.pairings(known, encoding="telling")) == "by task"
    assert pairing.summary(pairing.pairings(known, encoding="nope")) == "yes"
    assert pairing.summary(pairing.pairings(known, task="copy")) == "by options"


def test_a_summary_is_yes_or_no_only_where_it_is_so_throughout() -> None:
    yes, no, refused = Outcome("yes"), Outcome("no", "…"), Outcome("refused", "…")

    def told(*pairs: tuple[Outcome, list[Outcome]]) -> str:
        return pairing.summary(
            [Pairing("t", "e", first, tuple((("t.o=1",), other) for other in others)) for first, others in pairs]
        )

    assert told((yes, []), (yes, [refused]), (refused, [])) == "yes"
    assert told((no, []), (no, [refused])) == "no"
    assert told((yes, []), (no, [])) == "by task"
    assert told((yes, []), (yes, [no])) == "by options"
    assert told((no, [yes]), (no, [])) == "by options"
    assert told((refused, [yes]), (yes, [])) == "yes"
    assert told((refused, [])) == "–"


@pytest.mark.parametrize("wanted", [1, 5, 10])
def test_the_nearest_length_is_one_that_the_task_has(wanted: int) -> None:
    for name in building.REGISTRY.tasks:
        task = building.task(name)
        length = pairing.nearest_length(task, wanted)
        assert has(task, length)
        assert not any(has(task, between) for between in range(wanted, length))
    assert pairing.nearest_length(building.task("copy", unique=True, alphabet=4), wanted) == min(4, wanted)


def test_options_of_few_values_are_those_of_yes_or_no_and_of_names() -> None:
    assert options.choices(building.REGISTRY.task("parity")) == {"scratchpad": (True,), "bits": ("ones",)}
    assert options.choices(building.REGISTRY.encoding("offset").Options) == {"start": ("clipped",)}

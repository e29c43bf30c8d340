"""`algolen tasks` and `algolen encodings`: what is listed is what the classes say."""

from __future__ import annotations

import dataclasses
import re

import pytest

from algolen.config import SECTION_CLASSES
from algolen.errors import UserError
from algolen.pairing import nearest_length
from tests import building
from tests.cli.test_commands import by_json
from tests.conftest import CommandLine

TASKS, ENCODINGS = sorted(building.REGISTRY.tasks), sorted(building.REGISTRY.encodings)


def row_of(shown: str, name: str, following: int = 0) -> str:
    """The row of a list that begins with a name, with as many lines of notes."""
    lines = shown.splitlines()
    (place,) = (place for place, line in enumerate(lines) if line.split()[:1] == [name])
    return "\n".join(lines[place : place + 1 + following])


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", ["tasks", "encodings"])
def test_everything_there_is_is_listed_and_described(
    algolen: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    listed = by_json(algolen, command)
    assert [described["name"] for described in listed] == (TASKS if command == "tasks" else ENCODINGS)
    plain = algolen(command).stdout
    assert max(map(len, plain.splitlines())) <= columns
    for described in listed:
        name = described["name"]
        assert described["summary"]
        assert row_of(plain, name)
        assert by_json(algolen, command, name) == described
        alone = algolen(command, name).stdout
        assert max(map(len, alone.splitlines())) <= columns
        assert [o["name"] for o in described["options"] if f"{name}.{o['name']}" not in alone] == []


# Encodings ------------------------------------------------------------------------------------------------------------


def greedy(task: str, encoding: str) -> bool | None:
    """Whether the two at their defaults are greedy; None where they are refused."""
    made, pe = building.task(task), building.expression(encoding)
    try:
        pe.check(made, (nearest_length(made, 10),), made.layout.causal)
    except UserError:
        return None
    return pe.not_greedy(made) is None


@pytest.mark.parametrize("columns", [80, 120])
def test_the_row_of_an_encoding_has_all_that_its_class_says(
    algolen: CommandLine, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = algolen("encodings").stdout
    for name in ENCODINGS:
        cls, described = building.REGISTRY.encoding(name), by_json(algolen, "encodings", name)
        row = row_of(shown, name, following=0 if columns == 120 else 1)
        expansion = building.expression(name).expansion.replace("+", " +")
        ceiling, added = described["largest_id"], described["parameters_added"]
        facts = [expansion, cls.kind, *cls.needs, described["greedy"], f"{ceiling:,}" if ceiling else "–", f"{added:,}"]
        source = cls.paper.split(",")[0]
        facts += [cls.status, source] if columns == 120 else [f"{source}, {cls.status}"]
        assert re.split(r"\s{2,}", row) == facts


@pytest.mark.parametrize("name", ENCODINGS)
def test_greedy_or_not_is_what_expressions_say_of_all_tasks(algolen: CommandLine, name: str) -> None:
    described = by_json(algolen, "encodings", name)
    told = {pair["task"]: {"yes": True, "no": False, "refused": None}[pair["greedy"]] for pair in described["tasks"]}
    assert told == {task: greedy(task, name) for task in TASKS}
    kinds = {kind for kind in told.values() if kind is not None}
    changed = any(change["greedy"] != "refused" for pair in described["tasks"] for change in pair["changed_by"])
    expected = {True: "by options" if changed else "yes", False: "by options" if changed else "no"}
    assert described["greedy"] == (expected[kinds.pop()] if len(kinds) == 1 else "by task")
    alone = algolen("encodings", name).stdout
    for task, pair in zip(TASKS, described["tasks"], strict=True):
        assert task in alone
        assert pair["reason"] is None or pair["reason"] in " ".join(alone.split())


def test_an_option_that_ends_greedy_equality_is_named_with_the_reason(algolen: CommandLine) -> None:
    told = "no with addition where addition.padded=false and addition.reverse_answer=false: coupled ids betray the"
    assert told in " ".join(algolen("encodings", "coupling").stdout.split())
    assert "no with coupling where addition.padded=false" in " ".join(algolen("tasks", "addition").stdout.split())


def test_an_encoding_of_ones_own_is_listed_like_the_others(algolen: CommandLine) -> None:
    plugin = algolen.write("telling.py", TELLING)
    assert "  by task  " in row_of(algolen("encodings", "--plugin", plugin).stdout, "telling")
    alone = algolen("encodings", "telling", "--plugin", plugin).stdout
    assert "no with parity: it knows" in alone
    assert "yes with flip-flop\n" in alone
    assert "yes with selective-copy where selective-copy.answer=markers" in alone


TELLING = """
from algolen.encodings.base import Encoding

class Telling(Encoding):
    name, kind, paper = "telling", "none", "a test"

    @classmethod
    def reveals_answer(cls, options, task):
        return "it knows"
"""


# Tasks ----------------------------------------------------------------------------------------------------------------


def test_the_row_of_a_task_has_all_that_its_class_says(algolen: CommandLine) -> None:
    shown = algolen("tasks").stdout
    for name in TASKS:
        task = building.task(name)
        row = row_of(shown, name, following=3)
        says = [task.layout.value, *task.axes, *task.structures, *task.test_sets, task.source.split(",")[0]]
        says += [str(task.smallest_length), f"{task.chance(10):.1g}", f"{task.input_blind(10):.1g}"]
        assert [part for part in says if part not in row] == [], row


def test_a_task_is_described_with_what_is_scored_and_which_lengths_it_has(algolen: CommandLine) -> None:
    addition, reads = (by_json(algolen, "tasks", name) for name in ("addition", "flip-flop"))
    assert (addition["units_at_10"], addition["tokens_a_unit_at_10"]) == ([1, 1], [12, 12])
    assert (reads["units_at_10"], reads["tokens_a_unit_at_10"]) == ([1, 4], [1, 1])
    assert addition["first_lengths"] == [1, 2, 3, 4, 5]
    assert reads["first_lengths"] == [4, 6, 8, 10, 12]
    shown = algolen("tasks", "flip-flop").stdout
    assert "4, 6, 8, 10, …" in shown
    assert "1–4 units an example, of 1 token" in shown
    assert "1 unit an example, of 12 tokens\n" in algolen("tasks", "addition").stdout


@pytest.mark.parametrize("name", TASKS)
def test_a_task_names_the_encodings_it_cannot_have_and_why(algolen: CommandLine, name: str) -> None:
    described = by_json(algolen, "tasks", name)
    told = {pair["encoding"]: pair["greedy"] for pair in described["encodings"]}
    assert told == {pe: {True: "yes", False: "no", None: "refused"}[greedy(name, pe)] for pe in ENCODINGS}
    shown = " ".join(algolen("tasks", name).stdout.split())
    for pair in described["encodings"]:
        assert pair["encoding"] in shown
        assert pair["reason"] is None or f"{pair['encoding']}: {pair['reason']}" in shown


def test_a_task_is_described_as_far_as_it_goes(algolen: CommandLine) -> None:
    short = algolen.write("short.py", SHORT)
    described = by_json(algolen, "tasks", "short", "--plugin", short)
    assert described["tape_length_at_10"] == 10
    assert described["chance_at_10"] == pytest.approx(1 / 24)
    assert described["first_lengths"] == [1, 2, 3, 4]
    assert "at length 4 " in algolen("tasks", "short", "--plugin", short).stdout
    assert "1, 2, 3, 4\n" in algolen("tasks", "short", "--plugin", short).stdout


SHORT = """
from dataclasses import dataclass
from algolen.tasks.copying import Copy

@dataclass(frozen=True)
class Short(Copy):
    name = "short"
    alphabet: int = 4
    unique: bool = True
"""


# settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 120])
def test_everything_that_can_be_set_is_listed_with_what_it_does(
    algolen: CommandLine, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    plain, listed = algolen("settings").stdout, by_json(algolen, "settings")
    assert {name: {option["name"] for option in own} for name, own in listed.items()} == {
        name: {field.name for field in dataclasses.fields(cls)} for name, cls in SECTION_CLASSES.items()
    }
    assert max(map(len, plain.splitlines())) <= columns
    for name, own in listed.items():
        for option in own:
            assert option["description"], option
            assert row_of(plain, f"{name}.{option['name']}")


def test_the_settings_of_a_task_or_an_encoding_are_those_it_is_described_with(algolen: CommandLine) -> None:
    for command, names in (("tasks", TASKS), ("encodings", ENCODINGS)):
        for name in names:
            assert by_json(algolen, "settings", name) == {name: by_json(algolen, command, name)["options"]}
    assert "nope has no options" in algolen("settings", "nope").stdout


def test_settings_of_what_is_not_there_are_an_error_with_the_nearest_name(algolen: CommandLine) -> None:
    done = algolen("settings", "flip-flap")
    assert done.code == 2
    assert "did you mean 'flip-flop'" in done.stderr


def test_an_option_that_is_refused_whatever_the_task_is_named_once(algolen: CommandLine) -> None:
    shown = " ".join(algolen("encodings", "randomized-alibi").stdout.split())
    assert shown.count("draws the distances of keys ahead") == 1
    assert "refused all where randomized-alibi.sides=separate" in shown

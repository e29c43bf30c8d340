"""`algolen sample`: what is shown is what the model gets, and stands where it belongs."""

from __future__ import annotations

import itertools
import re

import pytest
from torch import Tensor

from algolen.batch import Batch
from algolen.errors import Refusal
from algolen.evaluation.test_sets import TestSet
from algolen.pairing import nearest_length
from algolen.phase import Phase
from algolen.task import Task
from tests import building
from tests.cli.test_commands import by_json
from tests.conftest import CommandLine

TASKS = sorted(building.REGISTRY.tasks)
MAPS = ("coupling", "randomized", "offset", "coupling+randomized", "offset+randomized", "coupling+fire")
TOLD = {
    "addition": ("sample", "addition"),
    "addition, unpadded": ("sample", "addition", "--set", "addition.padded=false"),
    "parity": ("sample", "parity"),
    "parity with a scratchpad": ("sample", "parity", "--set", "parity.scratchpad=true"),
    "copy": ("sample", "copy"),
    "reverse": ("sample", "reverse"),
    "flip-flop": ("sample", "flip-flop"),
    "flip-flop, all trained": ("sample", "flip-flop", "--set", "flip-flop.loss=all"),
    "selective-copy": ("sample", "selective-copy"),
    "selective-copy with markers": ("sample", "selective-copy", "--set", "selective-copy.answer=markers"),
}


def test_every_task_is_among_those_looked_at() -> None:
    assert {arguments[1] for arguments in TOLD.values()} == set(TASKS)


# Where things stand ---------------------------------------------------------------------------------------------------


def blocks(shown: str) -> list[list[str]]:
    """The blocks of rows of an output, in their order."""
    parts = [part.splitlines() for part in shown.split("\n\n")]
    trimmed = [list(itertools.dropwhile(lambda line: not line.startswith("input "), lines)) for lines in parts]
    return [lines for lines in trimmed if lines]


def cells(line: str, margin: int) -> list[tuple[str, int]]:
    """The cells of a row, each with the column after its last character."""
    return [(match[0], match.end() + margin) for match in re.finditer(r"\S+", line[margin:])]


def margin_of(names: list[str]) -> int:
    return max(map(len, names)) + 2


@pytest.mark.parametrize("pe", ["", "offset+randomized"])
@pytest.mark.parametrize("length", [6, 10, 30])
@pytest.mark.parametrize("told", TOLD)
def test_rows_stand_under_their_tokens_in_80_columns(algolen: CommandLine, told: str, length: int, pe: str) -> None:
    arguments = (*TOLD[told], "--length", str(length), "--examples", "1", "--pe", pe)
    (example,) = by_json(algolen, *arguments)
    shown = algolen(*arguments).stdout
    assert max(map(len, shown.splitlines())) <= 80
    marks = {name: ["^" if mark else None for mark in example[name]] for name in ("scored", "trained")}
    if marks["trained"] == marks["scored"]:
        del marks["trained"]
    rows = {"input": example["input"], "target": example["target"], **marks, **example["streams"]}
    if len(example["strata"]) > 1:
        rows["unit"] = [unit if unit >= 0 else None for unit in example["unit"]]
    margin, start = margin_of(list(rows)), 0
    for block in blocks(shown):
        read = {line[:margin].strip(): dict(map(reversed, cells(line, margin))) for line in block}
        ends = sorted(read["input"])
        for name, row in rows.items():
            at = [None if cell is None else str(cell) for cell in row[start : start + len(ends)]]
            assert [read.get(name, {}).get(end) for end in ends] == at, (told, name)
        assert set(read) <= set(rows)
        start += len(ends)
    assert start == len(example["input"])


def test_blocks_are_as_few_as_can_be_and_about_alike(algolen: CommandLine) -> None:
    shown = blocks(algolen("sample", "copy", "--length", "30", "--examples", "1", "--pe", "randomized").stdout)
    widths = [max(map(len, block)) for block in shown]
    assert sum(widths) - 21 * len(widths) > 59 * (len(widths) - 1), "they would not fit into one block less"
    assert max(widths) - min(widths) <= 12


def test_a_narrow_terminal_gets_narrow_blocks(algolen: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "26")
    shown = algolen("sample", "copy", "--examples", "1", "--pe", "coupling").stdout
    assert max(len(line) for block in blocks(shown) for line in block) <= 26
    assert "".join(cell for block in blocks(shown) for cell, _ in cells(block[0], 17)) == "[EOS]gjegi=gjegi"


# What is shown --------------------------------------------------------------------------------------------------------


def refusal(name: str, written: str) -> str | None:
    """Why the task cannot be had with these encodings."""
    task = building.task(name)
    try:
        building.expression(written).check(task, (nearest_length(task, 5),), task.layout.causal)
    except Refusal as error:
        return str(error)
    return None


def given(written: str, task: Task, examples: int, phase: Phase) -> tuple[Batch, tuple[Tensor, ...]]:
    """What a model of these encodings is given for the examples that `sample` shows: its ids, and its draws."""
    source = TestSet(task, "random", nearest_length(task, 5), examples, 0)
    positions = source.positions(0, examples, building.CPU)
    batch, model = source.batch(0, examples, building.CPU), building.model(building.expression(written))
    random = positions.fold("training") if phase.training else positions
    drawn = model.draw(batch, random, phase).encodings
    return batch, (drawn[0].ids_BTA, *(own.noise for own in drawn if isinstance(own.noise, Tensor)))


@pytest.mark.parametrize(("name", "written"), [pair for pair in itertools.product(TASKS, MAPS) if not refusal(*pair)])
def test_ids_are_those_that_the_model_gets(algolen: CommandLine, name: str, written: str) -> None:
    task, pe = building.task(name), building.expression(written)
    shown = by_json(algolen, "sample", name, "--pe", written, "--examples", "3")
    rows = {"ids at test": Phase.TEST, "ids in training": Phase.TRAINING}
    if pe.draws_at_test:
        rows["ids at test, even"] = Phase.EVEN
    assert {label for example in shown for label in example["streams"]} == set(rows)
    for label, phase in rows.items():
        batch, (ids_BTA, *_) = given(written, task, 3, phase)
        tape_B = batch.valid_BT.sum(dim=1).tolist()
        assert [example["streams"][label] for example in shown] == [
            ids_BTA[row, :tape, 0].tolist() for row, tape in enumerate(tape_B)
        ]


@pytest.mark.parametrize(
    ("name", "written"), [pair for pair in itertools.product(TASKS, (*MAPS, "abacus")) if refusal(*pair)]
)
def test_what_does_not_go_together_is_not_shown(algolen: CommandLine, name: str, written: str) -> None:
    refused = algolen("sample", name, "--pe", written)
    assert (refused.code, refused.stdout, refused.stderr) == (2, "", f"algolen: {refusal(name, written)}\n")


@pytest.mark.parametrize("written", ["abacus", "abacus+fire", "randomized+abacus+rope"])
def test_places_of_abacus_are_those_it_draws(algolen: CommandLine, written: str) -> None:
    shown = by_json(algolen, "sample", "addition", "--pe", written, "--examples", "2", "--seed", "0")
    for label, phase in (("places at test", Phase.TEST), ("places in training", Phase.TRAINING)):
        _, (_, places_BT) = given(written, building.task(), 2, phase)
        assert [example["streams"][label] for example in shown] == places_BT.tolist()
    at_test, in_training = (shown[0]["streams"][f"places {when}"] for when in ("at test", "in training"))
    assert at_test[:8] == [0, 1, 2, 3, 4, 5, 0, 1]
    shifts = {place - plain for plain, place in zip(at_test, in_training, strict=True) if plain}
    assert len(shifts) == 1, "one shift for the whole batch"
    assert shifts != {0}
    assert "places at test, even" not in shown[0]["streams"], "evenly spaced ids are no matter of abacus"


@pytest.mark.parametrize("written", ["rope", "abacus+fire", "t5", "learned"])
def test_readers_without_a_map_read_the_sequence(algolen: CommandLine, written: str) -> None:
    (example,) = by_json(algolen, "sample", "addition", "--examples", "1", "--pe", written)
    assert example["streams"]["sequence"] == list(range(len(example["input"])))
    assert not any(name.startswith("ids") for name in example["streams"])


@pytest.mark.parametrize("written", sorted(building.REGISTRY.encodings))
def test_every_encoding_can_be_shown_with_a_number_for_every_token(algolen: CommandLine, written: str) -> None:
    (example,) = by_json(algolen, "sample", "addition", "--examples", "1", "--pe", written)
    reads_ids = any(member.cls.reads_ids for member in building.expression(written).members)
    assert {len(stream) for stream in example["streams"].values()} <= {len(example["input"])}
    assert any(name == "sequence" or name.startswith("ids ") for name in example["streams"]) == reads_ids


@pytest.mark.parametrize("written", ["nope", "cope", "logn"])
def test_what_reads_no_ids_is_shown_none(algolen: CommandLine, written: str) -> None:
    (example,) = by_json(algolen, "sample", "parity", "--examples", "1", "--pe", written)
    assert example["streams"] == {}
    assert f"{written} looks at no position ids" in algolen("sample", "parity", "--pe", written).stdout


def test_reads_have_numbers_and_strata(algolen: CommandLine) -> None:
    often = ("sample", "flip-flop", "--length", "20", "--examples", "1", "--set", "flip-flop.ignore=0.2")
    (example,) = by_json(algolen, *often)
    reads = [place for place, symbol in enumerate(example["input"]) if symbol == "r"]
    assert len(reads) > 2
    assert [example["unit"][place] for place in reads] == list(range(len(reads)))
    assert example["strata"] == ["interior read"] * (len(reads) - 1) + ["final read"]
    shown = algolen(*often).stdout
    assert f"final read: unit {len(reads) - 1})" in shown
    assert "\nunit " in shown


def test_an_answer_that_ids_betray_is_said_to_be_no_greedy_one(algolen: CommandLine) -> None:
    asked = ("sample", "addition", "--set", "addition.padded=false", "--set", "addition.reverse_answer=false")
    reason = "coupled ids betray the answer's length"
    assert reason in algolen(*asked, "--pe", "coupling").stdout
    assert {example["not_greedy"] for example in by_json(algolen, *asked, "--pe", "coupling")} == {reason}
    assert {example["not_greedy"] for example in by_json(algolen, *asked, "--pe", "rope")} == {None}


# Several tasks --------------------------------------------------------------------------------------------------------


def test_several_tasks_are_shown_one_after_the_other_as_each_alone(algolen: CommandLine) -> None:
    told = ("--pe", "coupling", "--examples", "1", "--set", "parity.scratchpad=true", "--set", "coupling.ids=50")
    apart = [
        ("parity", "--set", "parity.scratchpad=true"),
        ("copy",),
        ("addition",),
    ]
    same = [("--pe", "coupling", "--examples", "1", "--set", "coupling.ids=50", *arguments) for arguments in apart]
    alone = [algolen("sample", *arguments).stdout for arguments in same]
    assert algolen("sample", "parity", "copy", "addition", "copy", *told).stdout == "".join(alone)
    together = by_json(algolen, "sample", "parity", "copy", "addition", *told)
    assert together == [example for arguments in same for example in by_json(algolen, "sample", *arguments)]
    assert [example["task"] for example in together] == ["parity", "copy", "addition"]
    assert [shown.splitlines()[0] for shown in alone] == [
        f"{name} of length 5 with coupling+learned" for name in ("parity", "copy", "addition")
    ]


def test_nothing_is_shown_if_one_of_several_tasks_cannot_be(algolen: CommandLine) -> None:
    for asked, reason in (
        (("parity", "coppy"), "unknown task 'coppy'; did you mean 'copy'?"),
        (("parity", "flip-flop", "--pe", "coupling"), "which task flip-flop lacks"),
        (("parity", "copy", "--set", "addition.operands=3"), "'addition' takes no part"),
    ):
        refused = algolen("sample", *asked)
        assert (refused.code, refused.stdout, reason in refused.stderr) == (2, "", True)


# Streams of plug-ins --------------------------------------------------------------------------------------------------

TWO_AXES = """
from dataclasses import dataclass
import torch
from algolen.batch import Structure
from algolen.encodings.base import Encoding
from algolen.tasks.copying import Copy

@dataclass(frozen=True)
class Grid(Copy):
    name = "grid"

    @property
    def coupled_axes(self):
        return 2

    def structure(self, tokens_BT, size_BA):
        found = super().structure(tokens_BT, size_BA)
        coupled_BTA = found.coupled_BTA
        return Structure(torch.cat((coupled_BTA, (coupled_BTA > 0) * 7), dim=-1), found.digit_BT, found.segment_BT)

class Halves(Encoding):
    name, kind, paper = "halves", "embedding", "a test"

    def draw(self, ids_BTA, batch, random, phase):
        return (batch.tokens_BT / 2, ids_BTA.expand(-1, -1, 2))

    def streams(self, drawn):
        return {"places": drawn.noise[0], "pairs": drawn.noise[1]}
"""


def test_ids_with_several_axes_have_a_row_for_each(algolen: CommandLine) -> None:
    plugin = algolen.write("two.py", TWO_AXES)
    told = ("sample", "grid", "--pe", "coupling", "--examples", "1", "--plugin", plugin, "--set", "learned.axes=2")
    (example,) = by_json(algolen, *map(str, told))
    expected = {"ids at test, axis 0": [0, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6], "ids at test, axis 1": [0] + [7] * 11}
    assert example["streams"]["ids at test"] == [list(pair) for pair in zip(*expected.values(), strict=True)]
    lines = [line for block in blocks(algolen(*told).stdout) for line in block]
    for name, row in expected.items():
        margin = margin_of([*expected, "ids in training, axis 0"])
        shown = [cell for line in lines if line.startswith(name) for cell, _ in cells(line, margin)]
        assert shown == [str(cell) for cell in row]


def test_streams_of_the_same_name_are_told_apart(algolen: CommandLine) -> None:
    told = ("sample", "grid", "--pe", "abacus+halves", "--examples", "1", "--plugin", algolen.write("two.py", TWO_AXES))
    (example,) = by_json(algolen, *map(str, told))
    assert {"places at test", "halves places at test", "pairs at test"} <= set(example["streams"])
    assert example["streams"]["halves places at test"][0] == 0.5
    assert " 0.5 " in algolen(*told).stdout


# Which examples -------------------------------------------------------------------------------------------------------


def test_samples_as_json_are_examples_with_aligned_lists(algolen: CommandLine) -> None:
    examples = by_json(algolen, "sample", "addition", "--length", "3", "--pe", "coupling", "--examples", "3")
    assert len(examples) == 3
    for example in examples:
        assert {len(example[name]) for name in ("input", "target", "trained", "scored", "unit")} == {13}
        assert {len(stream) for stream in example["streams"].values()} == {13}
        assert "".join(example["input"][1:8])[3] == "+"
        answer = "".join(example["target"][8:12])[::-1]
        first, second = "".join(example["input"][1:8]).split("+")
        assert int(first) + int(second) == int(answer)


def test_samples_are_those_of_the_test_set_with_that_seed(algolen: CommandLine) -> None:
    asked = ("sample", "addition", "--length", "6", "--seed", "3", "--examples")
    assert by_json(algolen, *asked, "4")[:2] == by_json(algolen, *asked, "2")
    assert by_json(algolen, *asked, "2") != by_json(algolen, *asked, "2", "--seed", "4")
    strata = [example["strata"] for example in by_json(algolen, *asked, "50", "--test-set", "edge")]
    assert ["0+0"] in strata


def test_options_change_what_is_sampled(algolen: CommandLine) -> None:
    (example,) = by_json(
        algolen, "sample", "addition", "--length", "2", "--examples", "1", "--set", "addition.operands=4"
    )
    assert example["input"].count("+") == 3

"""Parity: published tapes and ids, answers against a count, how bits are distributed, and its test sets."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algolen import options
from algolen.errors import UserError
from algolen.tasks.parity import EDGES, Parity
from tests.tasks.drawing import draw, ids_of_junk, labels, p_value, strings, structure

TASKS = st.builds(Parity, scratchpad=st.booleans(), bits=st.sampled_from(["iid", "ones"]))
EVERY = [Parity(scratchpad=scratchpad, bits=bits) for scratchpad in (False, True) for bits in ("iid", "ones")]

# Published tapes and ids ----------------------------------------------------------------------------------------------

GOLDEN: dict[str, tuple[bool, str, list[int]]] = {
    "answer only": (False, "10110=1", [1, 1, 1, 1, 1, 2, 1]),
    "answer only, even": (False, "10010=0", [1, 1, 1, 1, 1, 2, 1]),
    "scratchpad": (True, "10110=11011", [2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]),
    "answer only, one bit": (False, "1=1", [1, 2, 1]),
    "scratchpad, one bit": (True, "0=0", [2, 1, 2]),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_structure_is_the_published_one(case: str) -> None:
    scratchpad, tape, ids = GOLDEN[case]
    length = tape.index("=")
    answered = len(tape) - length - 1
    read = structure(Parity(scratchpad=scratchpad), ["[EOS]", *tape, "[PAD]"], length)
    assert read["ids"] == [0, *ids, 0]
    assert read["digits"] == [0, *[1] * length, 0, *[1] * answered, 0]
    assert read["segments"] == [0, *[0] * length, 0, *[1] * (answered + 1)]


@pytest.mark.parametrize("case", GOLDEN)
def test_published_tapes_are_what_the_oracle_says(case: str) -> None:
    scratchpad, tape, _ = GOLDEN[case]
    prompt, answer = tape.split("=")
    expected = dict(enumerate([*answer, "[EOS]"], start=len(prompt) + 1))
    assert Parity(scratchpad=scratchpad).oracle(["[EOS]", *prompt, "=", *"?" * len(answer)]) == expected


def test_a_whole_batch_of_mixed_lengths_is_laid_out_as_written_here() -> None:
    batch = draw(Parity(scratchpad=True), [3, 1])
    bits = batch.tokens_BT[0, 1:4] - 3
    first, second, third = (int(bit) for bit in bits)
    (only,) = (batch.tokens_BT[1, 1:2] - 3).tolist()
    running = [first, first ^ second, first ^ second ^ third]
    assert batch.tokens_BT.tolist() == [
        [1, 3 + first, 3 + second, 3 + third, 2, *(3 + parity for parity in running)],
        [1, 3 + only, 2, 3 + only, 0, 0, 0, 0],
    ]
    assert batch.targets_BT.tolist()[0][4:] == [*(3 + parity for parity in running), 1]
    assert batch.targets_BT.tolist()[1][2:] == [3 + only, 1, 0, 0, 0, 0]
    assert batch.scored_BT.long().tolist() == [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 0, 0]]
    assert batch.size_BA.tolist() == [[3], [1]]
    assert (batch.padded, batch.predicted_from) == (True, 2)
    assert not draw(Parity(), 3).padded
    assert draw(Parity(), 3).predicted_from == 4


@given(TASKS, st.integers(1, 12), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_ids_stay_within_the_table_whatever_a_wrong_model_writes(task: Parity, length: int, seed: int) -> None:
    smallest, largest = ids_of_junk(task, draw(task, [length, length + 9], seed=seed), seed)
    assert 0 <= smallest <= largest <= task.largest_coupled_id(length + 9)
    alone = ids_of_junk(task, draw(task, length, seed=seed), seed)
    assert alone[1] <= task.largest_coupled_id(length)


def test_ids_take_no_more_room_than_they_need_at_any_length() -> None:
    for scratchpad in (False, True):
        task = Parity(scratchpad=scratchpad)
        for length in (1, 2, 30):
            coupled_BTA = draw(task, length, 2).structure.coupled_BTA
            assert coupled_BTA is not None
            assert int(coupled_BTA.max()) == task.largest_coupled_id(length)


# Answers --------------------------------------------------------------------------------------------------------------


@given(TASKS, st.lists(st.integers(1, 300), min_size=1, max_size=8), st.sampled_from(list(Parity.test_sets)))
@settings(max_examples=150, deadline=None)
def test_answers_are_the_parities_at_every_length(task: Parity, lengths: list[int], test_set: str) -> None:
    batch = draw(task, lengths, test_set=test_set)
    assert batch.tape_length == task.tape_length(max(lengths))
    for length, label, (bits, answer) in zip(lengths, labels(task, batch, test_set), strings(task, batch), strict=True):
        assert len(bits) == length
        assert set(bits) <= {"0", "1"}
        parities, odd = [], False
        for bit in bits:
            odd ^= bit == "1"
            parities.append("1" if odd else "0")
        assert answer == (parities if task.scratchpad else parities[-1:])
        assert label in ({f"parity {parities[-1]}"} if test_set == "random" else EDGES)


# Distributions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scratchpad", [False, True])
def test_independent_bits_make_all_strings_alike(scratchpad: bool) -> None:
    task = Parity(scratchpad=scratchpad)
    drawn = Counter("".join(bits) for bits, _ in strings(task, draw(task, 4, 8000)))
    assert len(drawn) == 16
    assert p_value(list(drawn.values()), [1 / 16] * 16) > 1e-4


@pytest.mark.parametrize("neighbour", [0, 5])
def test_the_number_of_ones_is_uniform_and_their_places_too(neighbour: int) -> None:
    task, length, count = Parity(bits="ones"), 4, 6000
    batch = draw(task, [length] * count + [length + neighbour])
    drawn = Counter("".join(bits) for bits, _ in strings(task, batch.rows(0, count)))
    every = ["".join(bits) for bits in itertools.product("01", repeat=length)]
    expected = [1 / (length + 1) / math.comb(length, string.count("1")) for string in every]
    assert p_value([drawn[string] for string in every], expected) > 1e-4


def test_the_number_of_ones_is_uniform_at_long_lengths_too() -> None:
    task = Parity(bits="ones")
    ones = Counter(bits.count("1") for bits, _ in strings(task, draw(task, 99, 5000)))
    assert p_value([sum(ones[ten * 10 + one] for one in range(10)) for ten in range(10)], [0.1] * 10) > 1e-4
    assert {0, 99} <= set(ones)


# Baselines ------------------------------------------------------------------------------------------------------------


def weight(task: Parity, bits: tuple[str, ...]) -> float:
    """The probability of a string of bits, from what the options mean."""
    length, ones = len(bits), bits.count("1")
    return 0.5**length if task.bits == "iid" else 1 / (length + 1) / math.comb(length, ones)


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("task", EVERY, ids=str)
def test_the_best_input_blind_answer_is_the_most_probable_one(task: Parity, length: int) -> None:
    weights: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for bits in itertools.product("01", repeat=length):
        weights[tuple(task.oracle(["[EOS]", *bits, "="]).values())] += weight(task, bits)
    assert sum(weights.values()) == pytest.approx(1)
    assert task.input_blind(length) == pytest.approx(max(weights.values()))
    assert task.chance(length) == pytest.approx(1 / len(weights))


# Test sets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scratchpad", [False, True])
@pytest.mark.parametrize("length", [1, 2, 5, 6])
def test_the_edge_set_holds_every_kind_it_names(length: int, scratchpad: bool) -> None:
    task = Parity(scratchpad=scratchpad)
    batch = draw(task, length, 800, "edge")
    found: dict[str, set[str]] = {name: set() for name in EDGES}
    for name, (bits, _) in zip(labels(task, batch, "edge"), strings(task, batch), strict=True):
        found[name].add("".join(bits))
    zeros, ones = "0" * length, "1" * length
    assert found == {
        "00…0": {zeros},
        "11…1": {ones},
        "10…0": {"1" + zeros[1:]},
        "0…01": {zeros[1:] + "1"},
        "one 1 anywhere": {zeros[:place] + "1" + zeros[place + 1 :] for place in range(length)},
        "one 0 anywhere": {ones[:place] + "0" + ones[place + 1 :] for place in range(length)},
        "0101…": {("01" * length)[:length]},
        "1010…": {("10" * length)[:length]},
    }
    counted = Counter(labels(task, batch, "edge"))
    assert p_value([counted[name] for name in EDGES], [1 / len(EDGES)] * len(EDGES)) > 1e-4


def test_edge_cases_follow_the_length_of_each_example() -> None:
    task = Parity()
    batch = draw(task, [3, 9] * 300, test_set="edge")
    for name, (bits, _) in zip(labels(task, batch, "edge"), strings(task, batch), strict=True):
        if name == "0…01":
            assert bits == [*"0" * (len(bits) - 1), "1"]


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bits": "fair"}, "parity.bits should be iid or ones, not 'fair'"),
        ({"scratchpad": "some"}, "parity.scratchpad should be true or false, not 'some'"),
        ({"scratch": True}, "unknown option 'parity.scratch'; did you mean 'parity.scratchpad'?"),
    ],
)
def test_bad_options_are_refused_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as refused:
        options.read(Parity, values, "parity")
    assert str(refused.value) == message


def test_bits_and_parities_are_the_same_whatever_the_answer_looks_like() -> None:
    short, long = (draw(Parity(scratchpad=scratchpad), 7) for scratchpad in (False, True))
    assert torch.equal(short.tokens_BT[:, :9], long.tokens_BT[:, :9])

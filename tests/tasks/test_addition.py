"""Addition: published tapes and ids, sums against Python's, carries against a slow count, and its test sets."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algolen import options
from algolen.batch import Batch
from algolen.errors import UserError
from algolen.random import Random
from algolen.tasks.addition import EDGES, Addition


def draw(task: Addition, length: int, count: int = 64, test_set: str = "random", seed: int = 0) -> Batch:
    random = Random.of(seed, "test", examples_B=torch.arange(count))
    return task.sample_test(test_set, torch.full((count,), length), random)


def sums(task: Addition, batch: Batch) -> list[tuple[list[str], str]]:
    """Operands and answer of each example, most significant digit first; the answer is what the targets spell."""
    found = []
    for row in range(len(batch)):
        tape = "".join(task.decode(batch.tokens_BT[row][batch.valid_BT[row]].tolist()))
        answer = task.decode(batch.targets_BT[row][batch.scored_BT[row]].tolist())
        assert tape.startswith("[EOS]")
        assert answer.pop() == "[EOS]"
        written = tape.removeprefix("[EOS]").split("=")[0].split("+")
        operands = [text[::-1] if task.reverse_operands else text for text in written]
        found.append((operands, "".join(answer[::-1] if task.reverse_answer else answer)))
    return found


def numbers(task: Addition, batch: Batch) -> list[tuple[int, ...]]:
    return [tuple(int(text) for text in operands) for operands, _ in sums(task, batch)]


def strata(task: Addition, batch: Batch, test_set: str = "random") -> list[str]:
    """The label of each example."""
    return [
        task.stratum_name(test_set, int(stratum_T[scored_T][0]))
        for stratum_T, scored_T in zip(batch.stratum_BT, batch.scored_BT, strict=True)
    ]


def slow_chain(operands: Sequence[int]) -> int:
    """The longest carry chain, column by column."""
    longest = chain = carry = 0
    for place in range(len(str(max(operands))) + 1):
        column = sum(number // 10**place % 10 for number in operands)
        if (column + carry) // 10 > column // 10:
            chain += 1
        else:
            chain = 1 if column >= 10 else 0
        carry = (column + carry) // 10
        longest = max(longest, chain)
    return longest


def label(chain: int) -> str:
    bucket = next((name for low, name in ((20, "20+"), (10, "10–19"), (6, "6–9")) if chain >= low), str(chain))
    return f"carry chain {bucket}"


def p_value(observed: Sequence[int], probabilities: Sequence[float]) -> float:
    """Chi-square: how likely counts at least as far from these probabilities are."""
    total = sum(observed)
    statistic = sum((seen - total * p) ** 2 / (total * p) for seen, p in zip(observed, probabilities, strict=True))
    halves = torch.tensor([len(observed) - 1, statistic], dtype=torch.float64) / 2
    return float(torch.special.gammaincc(halves[0], halves[1]))


@st.composite
def tasks(draw: st.DrawFn) -> Addition:
    operands = draw(st.integers(2, 10))
    return Addition(
        operands=operands,
        reverse_answer=draw(st.booleans()),
        reverse_operands=draw(st.booleans()),
        padded=draw(st.booleans()),
        operand_lengths=draw(st.sampled_from(["equal", "independent"])),
        id_direction=draw(st.sampled_from(["least", "most"] if operands == 2 else ["least"])),
    )


TASKS = tasks()

# Published tapes and ids ----------------------------------------------------------------------------------------------

PLAIN = {"reverse_answer": False}
MOST = {"id_direction": "most"}
UNPADDED = {"padded": False}

GOLDEN: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "published": ({}, 3, "653+049=2070", "432143212345"),
    "plain answer": (PLAIN, 3, "653+049=0702", "432143265432"),
    "unpadded, all reversed": ({"reverse_operands": True, **UNPADDED}, 3, "356+94=207", "2341231234"),
    "unpadded, plain answer": (PLAIN | UNPADDED, 3, "653+49=702", "4321325432"),
    "paper": (MOST, 3, "653+049=2070", "234523454321"),
    "paper, plain answer": (MOST | PLAIN, 3, "653+049=0702", "234523451234"),
    "paper, unpadded": (MOST | UNPADDED, 3, "653+49=207", "2345345432"),
    "three operands": ({"operands": 3}, 2, "047+085+093=522", "432143214321234"),
    "three operands, plain answer": ({"operands": 3, **PLAIN}, 2, "047+085+093=225", "432143214321432"),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_coupled_ids_are_the_published_ones(case: str) -> None:
    chosen, length, tape, ids = GOLDEN[case]
    task = Addition(**chosen)
    tokens_BT = torch.tensor([task.encode(["[EOS]", *tape, "[PAD]"])])
    coupled_BTA = task.structure(tokens_BT, torch.tensor([[length]])).coupled_BTA
    assert coupled_BTA is not None
    assert coupled_BTA[0, :, 0].tolist() == [0, *(int(digit) for digit in ids), 0]


@pytest.mark.parametrize("case", GOLDEN)
def test_published_tapes_are_what_the_oracle_says(case: str) -> None:
    chosen, _, tape, _ = GOLDEN[case]
    prompt, answer = tape.split("=")
    equals = len(prompt) + 1
    expected = dict(enumerate([*answer, "[EOS]"], start=equals))
    assert Addition(**chosen).oracle(["[EOS]", *prompt, "=", *"?" * len(answer)]) == expected


def test_separators_close_segments_and_digits_are_marked() -> None:
    task = Addition()
    structure = task.structure(torch.tensor([task.encode(["[EOS]", *"53+49=201"])]), torch.tensor([[2]]))
    assert structure.segment_BT is not None
    assert structure.digit_BT is not None
    assert structure.segment_BT[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert structure.digit_BT[0].tolist() == [False, True, True, False, True, True, False, True, True, True]


@given(TASKS, st.integers(1, 300), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_digits_share_an_id_where_they_have_the_same_significance_and_nowhere_else(
    task: Addition, length: int, seed: int
) -> None:
    batch = draw(task, length, 4, seed=seed)
    assert batch.structure.coupled_BTA is not None
    for tokens_T, ids_T, valid_T in zip(
        batch.tokens_BT, batch.structure.coupled_BTA[..., 0], batch.valid_BT, strict=True
    ):
        tape, ids = task.decode(tokens_T[valid_T].tolist()), ids_T[valid_T].tolist()
        *operands, answer = runs(tape)
        significances: dict[int, set[int]] = {}
        for places, least_first in [(own, task.reverse_operands) for own in operands] + [(answer, task.reverse_answer)]:
            for significance, place in enumerate(places if least_first else places[::-1]):
                significances.setdefault(ids[place], set()).add(significance)
        assert all(len(own) == 1 for own in significances.values())
        assert len(significances) == max(len(places) for places in (*operands, answer))
        least, most = min(significances), max(significances)
        (of_least,), (of_most,) = significances[least], significances[most]
        assert (of_least < of_most) == (task.id_direction == "least") or least == most


def runs(tape: Sequence[str]) -> list[list[int]]:
    """The places of each run of digits on a tape."""
    by_kind = itertools.groupby(range(len(tape)), lambda place: tape[place].isdigit())
    return [list(places) for digits, places in by_kind if digits]


@given(TASKS, st.integers(1, 12), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_ids_stay_within_the_table_whatever_a_wrong_model_writes(task: Addition, length: int, seed: int) -> None:
    batch = draw(task, length, 16, seed=seed)
    junk = Random.of(seed, "junk", examples_B=torch.arange(16)).integers(0, len(task.vocabulary), batch.tape_length)
    prompt_BT = batch.valid_BT & (batch.scored_BT.cumsum(dim=1) <= 1)
    coupled_BTA = task.structure(torch.where(prompt_BT, batch.tokens_BT, junk), batch.size_BA).coupled_BTA
    assert coupled_BTA is not None
    assert coupled_BTA.min() >= 0
    assert coupled_BTA.max() <= task.largest_coupled_id(length)


# Sums -----------------------------------------------------------------------------------------------------------------


@given(TASKS, st.integers(1, 300), st.sampled_from(list(Addition.test_sets)), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_answers_are_the_sums(task: Addition, length: int, test_set: str, seed: int) -> None:
    for operands, answer in sums(task, draw(task, length, 8, test_set, seed)):
        assert len(operands) == task.operands
        total = str(sum(int(text) for text in operands))
        if task.padded:
            width = length if task.operands == 2 else len(str(task.operands * (10**length - 1)))
            assert {len(text) for text in operands} == {width}
            assert answer == total.zfill(length + 1 if task.operands == 2 else width)
        else:
            assert all(text == str(int(text)) for text in operands)
            assert answer == total


@given(TASKS, st.integers(1, 300), st.sampled_from(["random", "carry"]), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_strata_are_the_longest_carry_chains(task: Addition, length: int, test_set: str, seed: int) -> None:
    batch = draw(task, length, 8, test_set, seed)
    expected = [label(slow_chain(operands)) for operands in numbers(task, batch)]
    assert strata(task, batch, test_set) == expected


@given(TASKS, st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_the_longest_operand_has_the_nominal_length_and_none_leads_with_zero(
    task: Addition, length: int, seed: int
) -> None:
    for operands in numbers(task, draw(task, length, 16, seed=seed)):
        lengths = [len(str(number)) for number in operands]
        assert max(lengths) == length
        if task.operand_lengths == "equal":
            assert set(lengths) == {length}


def test_digits_are_uniform_and_leading_ones_skip_zero() -> None:
    task = Addition()
    for length, smallest in ((1, 0), (3, 1)):
        texts = [text for operands, _ in sums(task, draw(task, length, 4000)) for text in operands]
        leading = Counter(int(text[0]) for text in texts)
        assert set(leading) == set(range(smallest, 10))
        assert p_value([leading[d] for d in range(smallest, 10)], [1 / (10 - smallest)] * (10 - smallest)) > 1e-4
        last = Counter(int(text[-1]) for text in texts)
        assert p_value([last[digit] for digit in range(10)], [0.1] * 10) > 1e-4


@pytest.mark.parametrize("operands", [2, 3])
def test_independent_lengths_are_uniform_beside_one_full_operand_at_any_place(operands: int) -> None:
    task, length = Addition(operands=operands, operand_lengths="independent", padded=False), 4
    drawn = Counter(tuple(len(str(n)) for n in row) for row in numbers(task, draw(task, length, 6000)))
    expected: Counter[tuple[int, ...]] = Counter()
    for full in range(operands):
        for others in itertools.product(range(1, length + 1), repeat=operands - 1):
            expected[(*others[:full], length, *others[full:])] += 1
    assert set(drawn) == set(expected)
    cases = list(expected)
    assert p_value([drawn[case] for case in cases], [expected[case] / expected.total() for case in cases]) > 1e-4


@pytest.mark.parametrize("length", [1, 2])
def test_no_input_blind_answer_beats_the_bound_and_two_equal_operands_reach_it(length: int) -> None:
    full = range(10 ** (length - 1) if length > 1 else 0, 10**length)
    equal = Counter(a + b for a in full for b in full)
    assert Addition().input_blind(length) == max(equal.values()) / equal.total()
    three = Counter(a + b + c for a in full for b in full for c in full[::7])
    assert max(three.values()) / three.total() <= Addition(operands=3).input_blind(length)
    independent: Counter[int] = Counter()
    for width in range(1, length + 1):
        shorter = range(10 ** (width - 1) if width > 1 else 0, 10**width)
        for a, b in itertools.product(full, shorter):
            independent[a + b] += 10**6 // len(shorter)
    task = Addition(operand_lengths="independent")
    assert max(independent.values()) / independent.total() <= task.input_blind(length)


def test_chance_is_one_of_all_answers_of_the_width() -> None:
    assert Addition().chance(3) == pytest.approx(1e-4)
    assert Addition(operands=5).chance(3) == pytest.approx(1e-4)
    assert Addition(padded=False).chance(3) == pytest.approx(1e-3)


# Test sets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operands", [2, 4])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("length", [1, 2, 6])
def test_the_edge_set_holds_every_kind_it_names(operands: int, padded: bool, length: int) -> None:
    task = Addition(operands=operands, padded=padded)
    batch = draw(task, length, 600, "edge")
    found: dict[str, set[tuple[int, ...]]] = {name: set() for name in EDGES}
    for name, row in zip(strata(task, batch, "edge"), numbers(task, batch), strict=True):
        found[name].add(row)
    nines, fives, top = 10**length - 1, 5 * (10**length - 1) // 9, 10 ** (length - 1)
    rest, digits, full = (0,) * (operands - 2), set(range(10)), set(range(top if length > 1 else 0, 10**length))
    assert found["0+0"] == {(0, 0, *rest)}
    assert found["99…9+1"] == {(nines, 1, *rest)}
    assert found["1+99…9"] == {(1, nines, *rest)}
    for name, digit in (("99…9+99…9", nines), ("55…5+55…5", fives), ("10…0+10…0", top)):
        assert found[name] == {(digit,) * operands}
    complementary = found["every column sums to 9"]
    assert {sum(row) for row in complementary} == {nines}
    assert len(complementary) > 5
    assert all({row[0], row[1]} <= full and row[2:] == rest for row in complementary)
    assert {sum(row) - nines for row in found["sums of 9 above a carry"]} == {10**place for place in range(length)}
    assert all({row[0], row[1]} <= full for row in found["sums of 9 above a carry"])
    for name, (long, short) in {"long+one digit": (0, 1), "one digit+long": (1, 0)}.items():
        assert {row[short] for row in found[name]} == digits
        assert {row[long] for row in found[name]} <= full
        assert len({row[long] for row in found[name]}) > 8


def test_edge_cases_above_a_carry_chain_to_the_top() -> None:
    batch = draw(Addition(), 9, 600, "edge")
    kinds = strata(Addition(), batch, "edge")
    for name, operands in zip(kinds, numbers(Addition(), batch), strict=True):
        if name == "sums of 9 above a carry":
            place = len(str(sum(operands) - (10**9 - 1))) - 1
            assert slow_chain(operands) == 9 - place


@pytest.mark.parametrize("operands", [2, 5])
def test_the_carry_set_holds_chains_of_every_length_where_random_sums_hold_short_ones(operands: int) -> None:
    task, length = Addition(operands=operands), 12
    chains = Counter(slow_chain(row) for row in numbers(task, draw(task, length, 1200, "carry")))
    assert set(range(2, length + 1)) <= set(chains)
    assert sum(chains[chain] for chain in range(7, length + 1)) > 1200 * 0.45
    random = Counter(slow_chain(row) for row in numbers(Addition(), draw(Addition(), length, 1200)))
    assert max(random) < 9


def test_carry_chains_start_anywhere_and_leave_the_first_two_operands_at_full_length() -> None:
    starts: Counter[int] = Counter()
    for operands, _ in sums(Addition(), draw(Addition(), 8, 1200, "carry")):
        assert all(text[0] != "0" for text in operands)
        columns = [int(a) + int(b) for a, b in zip(*operands, strict=True)][::-1]
        starts.update(place for place in range(5) if columns[place] >= 10 and columns[place + 1 : place + 4] == [9] * 3)
    assert set(starts) == set(range(5))
    assert min(starts.values()) > 12, "more than chance alone would make"


def test_the_carry_set_is_defined_for_one_digit() -> None:
    assert {slow_chain(row) for row in numbers(Addition(), draw(Addition(), 1, 200, "carry"))} == {1}


# Batches --------------------------------------------------------------------------------------------------------------


def test_a_batch_of_one_length_is_not_padded_and_one_of_mixed_lengths_is() -> None:
    random = Random.of(0, "test", examples_B=torch.arange(2))
    even = Addition().sample(torch.tensor([5, 5]), random)
    assert not even.padded
    assert even.valid_BT.all()
    mixed = Addition().sample(torch.tensor([5, 7]), random)
    assert mixed.padded
    assert mixed.valid_BT.sum(dim=1).tolist() == [Addition().tape_length(5), Addition().tape_length(7)]
    assert mixed.tape_length == Addition().tape_length(7)


def test_the_size_follows_from_the_prompt() -> None:
    assert (draw(Addition(), 6, test_set="edge").size_BA == 6).all()
    task = Addition(padded=False)
    batch = draw(task, 6, test_set="edge")
    assert batch.size_BA[:, 0].tolist() == [max(len(str(n)) for n in row) for row in numbers(task, batch)]


def test_ids_betray_the_answer_only_without_padding_and_in_plain_order() -> None:
    for padded, reverse in itertools.product([True, False], repeat=2):
        causal = Addition(padded=padded, reverse_answer=reverse).structure_is_causal
        assert causal == (padded or reverse)


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "subject", "hint"),
    [
        ({"operands": 1}, "addition.operands ", "2, not 1"),
        ({"operands": "11"}, "addition.operands ", "10, not '11'"),
        ({"operands": "two"}, "addition.operands ", "not 'two'"),
        ({"reverse_answer": "perhaps"}, "addition.reverse_answer ", "not 'perhaps'"),
        ({"operand_lengths": "equals"}, "addition.operand_lengths ", "equal or independent, not 'equals'"),
        ({"id_direction": "most", "operands": 3}, "addition.id_direction=most ", "2 operands, not 3"),
        ({"reversed_answer": True}, "unknown option 'addition.reversed_answer'", "'addition.reverse_answer'?"),
    ],
)
def test_bad_options_are_refused_in_one_line(values: dict[str, Any], subject: str, hint: str) -> None:
    with pytest.raises(UserError) as refused:
        options.read(Addition, values, "addition")
    assert str(refused.value).startswith(subject)
    assert str(refused.value).endswith(hint)
    assert "\n" not in str(refused.value)

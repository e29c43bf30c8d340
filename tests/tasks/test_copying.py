"""Copy and reverse: published tapes and ids, answers against Python's, how symbols are distributed, and test sets."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algolen import options
from algolen.errors import UserError
from algolen.tasks.copying import EDGES, Copy, Repeating, Reverse
from tests.tasks.drawing import draw, ids_of_junk, labels, p_value, strings, structure

CLASSES: list[type[Repeating]] = [Copy, Reverse]
TASKS = st.builds(
    lambda cls, alphabet, unique: cls(alphabet=alphabet, unique=unique),
    st.sampled_from(CLASSES),
    st.integers(2, 400),
    st.booleans(),
)

both = pytest.mark.parametrize("cls", CLASSES)

# Published tapes and ids ----------------------------------------------------------------------------------------------

GOLDEN: dict[str, tuple[type[Repeating], str, list[int]]] = {
    "copy": (Copy, "ehcj=ehcj", [2, 3, 4, 5, 1, 2, 3, 4, 5]),
    "reverse": (Reverse, "ehcj=jche", [1, 2, 3, 4, 5, 4, 3, 2, 1]),
    "copy, one symbol": (Copy, "a=a", [2, 1, 2]),
    "reverse, one symbol": (Reverse, "a=a", [1, 2, 1]),
    "copy, repeats": (Copy, "aba=aba", [2, 3, 4, 1, 2, 3, 4]),
    "reverse, repeats": (Reverse, "aab=baa", [1, 2, 3, 4, 3, 2, 1]),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_structure_is_the_published_one(case: str) -> None:
    cls, tape, ids = GOLDEN[case]
    length = tape.index("=")
    read = structure(cls(), ["[EOS]", *tape, "[PAD]"], length)
    assert read["ids"] == [0, *ids, 0]
    assert read["digits"] == [0, *[1] * length, 0, *[1] * length, 0]
    assert read["segments"] == [0, *[0] * length, 0, *[1] * (length + 1)]


@pytest.mark.parametrize("case", GOLDEN)
def test_published_tapes_are_what_the_oracle_says(case: str) -> None:
    cls, tape, _ = GOLDEN[case]
    prompt, answer = tape.split("=")
    expected = dict(enumerate([*answer, "[EOS]"], start=len(prompt) + 1))
    assert cls().oracle(["[EOS]", *prompt, "=", *"?" * len(answer)]) == expected


@both
def test_a_whole_batch_of_mixed_lengths_is_laid_out_as_written_here(cls: type[Repeating]) -> None:
    batch = draw(cls(), [3, 1])
    said, (only,) = batch.tokens_BT[0, 1:4].tolist(), batch.tokens_BT[1, 1:2].tolist()
    again = said if cls is Copy else said[::-1]
    assert batch.tokens_BT.tolist() == [[1, *said, 2, *again], [1, only, 2, only, 0, 0, 0, 0]]
    assert batch.targets_BT.tolist()[0][4:] == [*again, 1]
    assert batch.targets_BT.tolist()[1][2:] == [only, 1, 0, 0, 0, 0]
    assert batch.scored_BT.long().tolist() == [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 0, 0]]
    assert torch.equal(batch.trained_BT, batch.scored_BT)
    assert batch.size_BA.tolist() == [[3], [1]]
    assert (batch.padded, batch.predicted_from) == (True, 2)
    assert not draw(cls(), 3).padded
    assert draw(cls(), 3).predicted_from == 4


@given(TASKS, st.integers(1, 12), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_ids_stay_within_the_table_whatever_a_wrong_model_writes(task: Repeating, length: int, seed: int) -> None:
    longest = min(length + 9, task.alphabet if task.unique else length + 9)
    length = min(length, longest)
    smallest, largest = ids_of_junk(task, draw(task, [length, longest], seed=seed), seed)
    assert 0 <= smallest <= largest <= task.largest_coupled_id(longest)
    assert ids_of_junk(task, draw(task, length, seed=seed), seed)[1] <= task.largest_coupled_id(length)


@both
def test_what_a_wrong_model_writes_beyond_an_answer_has_ids_of_the_same_example(cls: type[Repeating]) -> None:
    read = structure(cls(), ["[EOS]", *"ab=ababab"], 2)["ids"]
    assert max(read) == 3
    assert min(read[1:]) == 1


# Answers --------------------------------------------------------------------------------------------------------------


@given(
    TASKS,
    st.lists(st.integers(1, 300), min_size=1, max_size=8),
    st.sampled_from(list(Repeating.test_sets)),
    st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_answers_are_the_prompts_at_every_length(task: Repeating, lengths: list[int], test_set: str, seed: int) -> None:
    lengths = [min(length, task.alphabet) if task.unique else length for length in lengths]
    batch = draw(task, lengths, test_set=test_set, seed=seed)
    assert batch.tape_length == task.tape_length(max(lengths))
    for length, (prompt, answer) in zip(lengths, strings(task, batch), strict=True):
        assert len(prompt) == length
        assert set(prompt) <= set(task.vocabulary[3:])
        assert answer == (prompt if isinstance(task, Copy) else prompt[::-1])
        assert len(set(prompt)) == length or not task.unique


@both
def test_symbols_have_names_that_do_not_depend_on_how_many_there_are(cls: type[Repeating]) -> None:
    assert "".join(cls().vocabulary[3:]) == "abcdefghij"
    many = cls(alphabet=60).vocabulary
    assert len(many) == 63
    assert many[:13] == cls().vocabulary
    assert many[27:31] == ("y", "z", "a1", "b1")
    assert many[54:57] == ("z1", "a2", "b2")


# Distributions --------------------------------------------------------------------------------------------------------


@both
def test_symbols_are_independent_and_uniform(cls: type[Repeating]) -> None:
    task = cls(alphabet=3)
    drawn = Counter("".join(prompt) for prompt, _ in strings(task, draw(task, 3, 8000)))
    assert len(drawn) == 27
    assert p_value(list(drawn.values()), [1 / 27] * 27) > 1e-4


@both
@pytest.mark.parametrize(("alphabet", "length"), [(4, 4), (5, 2), (6, 1)])
def test_unique_symbols_are_uniform_over_all_orders_of_all_choices(
    cls: type[Repeating], alphabet: int, length: int
) -> None:
    task = cls(alphabet=alphabet, unique=True)
    batch = draw(task, [length] * 6000 + [alphabet])
    drawn = Counter("".join(prompt) for prompt, _ in strings(task, batch.rows(0, 6000)))
    every = ["".join(chosen) for chosen in itertools.permutations("abcdef"[:alphabet], length)]
    assert set(drawn) == set(every)
    assert p_value([drawn[string] for string in every], [1 / len(every)] * len(every)) > 1e-4


def test_copy_and_reverse_are_asked_the_same() -> None:
    for fields in ({}, {"unique": True}):
        copied, reversed_ = (strings(task, draw(task, 6)) for task in (Copy(**fields), Reverse(**fields)))
        assert [prompt for prompt, _ in copied] == [prompt for prompt, _ in reversed_]


# Baselines ------------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize(("alphabet", "length"), [(2, 1), (2, 2), (4, 3), (5, 4)])
def test_chance_and_the_best_input_blind_answer_are_one_of_all_prompts(
    cls: type[Repeating], unique: bool, alphabet: int, length: int
) -> None:
    task = cls(alphabet=alphabet, unique=unique)
    prompts = itertools.product("abcde"[:alphabet], repeat=length)
    answers = Counter(
        tuple(task.oracle(["[EOS]", *prompt, "="]).values())
        for prompt in prompts
        if not unique or len(set(prompt)) == length
    )
    assert task.input_blind(length) == pytest.approx(max(answers.values()) / answers.total())
    assert task.chance(length) == pytest.approx(1 / len(answers))


def test_reference_accuracies_of_long_strings_vanish_quietly() -> None:
    assert Copy(alphabet=1000, unique=True).chance(1000) == 0
    assert Reverse(alphabet=1000).input_blind(2000) == 0


# Test sets ------------------------------------------------------------------------------------------------------------


def is_kind(name: str, prompt: list[str], letters: str) -> bool:
    """Whether a prompt is of the kind of edge cases, told from its symbols."""
    places = [letters.index(letter) for letter in prompt]
    steps = {(after - before) % len(letters) for before, after in itertools.pairwise(places)}
    half = (len(prompt) + 1) // 2
    return {
        "ascending": steps <= {1},
        "descending": steps <= {len(letters) - 1},
        "one symbol": len(set(prompt)) == 1,
        "two alternating": set(prompt[::2]) | set(prompt[1::2]) == set(prompt[:2]) and len(set(prompt[::2])) == 1,
        "half of it one run": any(len(set(prompt[start : start + half])) == 1 for start in range(half + 1)),
        "palindrome": prompt == prompt[::-1],
    }[name]


@both
@pytest.mark.parametrize("length", [1, 2, 7, 12])
def test_the_edge_set_holds_every_kind_it_names(cls: type[Repeating], length: int) -> None:
    task = cls(alphabet=5)
    batch = draw(task, length, 900, "edge")
    found: dict[str, list[list[str]]] = {name: [] for name in EDGES}
    for name, (prompt, _) in zip(labels(task, batch, "edge"), strings(task, batch), strict=True):
        found[name].append(prompt)
    for name, prompts in found.items():
        assert all(is_kind(name, prompt, "abcde") for prompt in prompts), name
        assert {prompt[0] for prompt in prompts} == set("abcde"), name
        assert p_value([len(prompts), 900 - len(prompts)], [1 / len(EDGES), 1 - 1 / len(EDGES)]) > 1e-5, name
    if length > 1:
        pairs = {tuple(prompt[:2]) for prompt in found["two alternating"]}
        assert pairs == set(itertools.permutations("abcde", 2))
    if length == 12:
        starts = {len(prompt) - len("".join(prompt).lstrip(prompt[0])) for prompt in found["half of it one run"]}
        assert len(starts) > 2, "the run begins anywhere"
        assert len({"".join(prompt) for prompt in found["palindrome"]}) > 100


def test_half_of_a_prompt_is_one_run_from_its_first_symbol_to_its_last() -> None:
    task = Copy(alphabet=100)
    batch = draw(task, 6, 2000, "edge")
    runs = Counter(
        next(start for start in range(4) if len(set(prompt[start : start + 3])) == 1)
        for name, (prompt, _) in zip(labels(task, batch, "edge"), strings(task, batch), strict=True)
        if name == "half of it one run"
    )
    assert set(runs) == {0, 1, 2, 3}
    assert min(runs.values()) > 40


@both
def test_edge_cases_of_unique_symbols_ascend_and_descend(cls: type[Repeating]) -> None:
    task = cls(alphabet=7, unique=True)
    batch = draw(task, 7, 200, "edge")
    kinds = labels(task, batch, "edge")
    assert set(kinds) == {"ascending", "descending"}
    for name, (prompt, _) in zip(kinds, strings(task, batch), strict=True):
        assert is_kind(name, prompt, "abcdefg")
        assert len(set(prompt)) == 7


# Refusals -------------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alphabet": 1}, ".alphabet should be at least 2, not 1"),
        ({"alphabet": 1_001}, ".alphabet should be at most 1000, not 1001"),
        ({"unique": "maybe"}, ".unique should be true or false, not 'maybe'"),
    ],
)
def test_bad_options_are_refused_in_one_line(cls: type[Repeating], values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as refused:
        options.read(cls, values, cls.name)
    assert str(refused.value) == cls.name + message


@both
def test_unique_symbols_last_as_long_as_the_alphabet(cls: type[Repeating]) -> None:
    cls(alphabet=30).check_length(31)
    task = cls(alphabet=30, unique=True)
    task.check_length(30)
    with pytest.raises(UserError, match=rf"{cls.name}\.unique=true .* is 30: --set {cls.name}\.alphabet=31"):
        task.check_length(31)
    assert len(set(strings(task, draw(task, 30, 1))[0][0])) == 30

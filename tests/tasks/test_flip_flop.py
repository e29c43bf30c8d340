"""Flip-flop: the tape of the publication, its counts of reads, and which symbols depend on which."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from algolen import experiment as experiments
from algolen import options
from algolen.batch import Batch
from algolen.config import TopLevel
from algolen.errors import UserError
from algolen.evaluation.counting import Counts, count
from algolen.evaluation.test_sets import with_axis
from algolen.random import Random
from algolen.tasks.flip_flop import FlipFlop
from tests import building
from tests.tasks.test_addition import p_value


def draw(task: FlipFlop, length: int | Tensor, count: int = 64, test_set: str = "random", seed: int = 0) -> Batch:
    lengths_B = torch.full((count,), length) if isinstance(length, int) else length
    random = Random.of(seed, "test", examples_B=torch.arange(len(lengths_B)))
    return task.sample_test(test_set, lengths_B, random)


def sequences(task: FlipFlop, batch: Batch) -> list[list[str]]:
    """The whole sequences, each tape with the last symbol, which is a target only."""
    return [
        task.decode([*tokens_T[valid_T].tolist(), int(targets_T[valid_T][-1])])
        for tokens_T, targets_T, valid_T in zip(batch.tokens_BT, batch.targets_BT, batch.valid_BT, strict=True)
    ]


@st.composite
def tasks(draw: st.DrawFn) -> FlipFlop:
    ignore = draw(st.floats(0, 1))
    write = draw(st.one_of(st.none(), st.floats(0, 1).map(lambda part: part * (1 - ignore))))
    return FlipFlop(ignore, write, draw(st.integers(2, 300)), draw(st.sampled_from(["reads", "all"])))


LENGTHS = st.integers(2, 150).map(lambda pairs: 2 * pairs)

# The published sequence -----------------------------------------------------------------------------------------------


def test_the_register_is_read_behind_what_is_ignored() -> None:
    assert FlipFlop().oracle([*"w0i1r0i0w1i0r"]) == {4: "0", 12: "1"}
    assert FlipFlop().oracle([*"w1w0r0i1r"]) == {4: "0", 8: "0"}


def test_a_sampled_tape_stays_what_it_is() -> None:
    batch = draw(FlipFlop(ignore=0.4), 20, 2)
    drawn = ["".join(sequence) for sequence in sequences(FlipFlop(), batch)]
    assert drawn == ["w0w0r0r0i1w1r1w1i1r1", "w1i1r1i0i1r1w0i1i0r0"], "raise the version"
    assert batch.unit_BT[0].tolist() == [-1, -1, -1, -1, 0, -1, 1, *[-1] * 5, 2, *[-1] * 5, 3]


@given(tasks(), LENGTHS, st.sampled_from(list(FlipFlop.test_sets)), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_sequences_obey_the_grammar(task: FlipFlop, length: int, test_set: str, seed: int) -> None:
    batch = draw(task, length, 8, test_set, seed)
    assert batch.tape_length == length - 1 == task.tape_length(length)
    for row, sequence in enumerate(sequences(task, batch)):
        assert len(sequence) == length
        assert sequence[0] == "w"
        assert sequence[-2] == "r"
        register, reads = "", []
        for place in range(0, length, 2):
            instruction, symbol = sequence[place : place + 2]
            assert instruction in ("w", "r", "i")
            assert 0 <= int(symbol) < task.symbols
            if instruction == "w":
                register = symbol
            elif instruction == "r":
                assert symbol == register
                reads.append(place)
        assert batch.scored_BT[row].nonzero()[:, 0].tolist() == reads
        assert batch.unit_BT[row, reads].tolist() == list(range(len(reads)))
        assert batch.stratum_BT[row, reads].tolist() == [0] * (len(reads) - 1) + [1]
        expected = sequence[1:] if task.loss == "all" else [sequence[place + 1] for place in reads]
        assert task.decode(batch.targets_BT[row][batch.trained_BT[row]].tolist()) == expected


def test_a_loss_on_reads_is_trained_where_it_is_scored_and_a_loss_on_all_wherever_a_token_follows() -> None:
    lengths_B = torch.tensor([4, 20, 12])
    reads, everything = (draw(FlipFlop(loss=loss), lengths_B) for loss in ("reads", "all"))  # type: ignore[arg-type]
    assert torch.equal(reads.trained_BT, reads.scored_BT)
    assert torch.equal(everything.trained_BT, everything.valid_BT)
    assert everything.trained_BT.sum(dim=1).tolist() == [3, 19, 11]
    assert torch.equal(reads.scored_BT, everything.scored_BT)
    assert torch.equal(reads.tokens_BT, everything.tokens_BT)
    following_BT = everything.valid_BT[:, 1:]
    assert torch.equal(everything.targets_BT[:, :-1][following_BT], everything.tokens_BT[:, 1:][following_BT])


def test_every_read_counts_by_itself_and_the_last_one_apart() -> None:
    task = FlipFlop(ignore=0.1)
    batch = draw(task, 64, 32)
    answered = torch.nn.functional.one_hot(batch.targets_BT, len(task.vocabulary)).float()
    missed_BT = batch.scored_BT.clone()
    missed_BT[:, :-1] = False
    counted = count(torch.where(missed_BT[..., None], -answered, answered), batch)
    reads = int(batch.scored_BT.sum())
    named = {task.stratum_name("random", stratum): (own.exact, own.units) for stratum, own in counted.items()}
    assert named == {"interior read": (reads - 32, reads - 32), "final read": (0, 32)}
    assert sum(counted.values(), Counts()).units == reads


# Frequencies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ignore", "published", "reads"),
    [(0.8, 26_508 / 1_000, 26.4), (0.98, 353_875 / 1e5, 3.54), (0.1, 345_781 / 3e3, 115.3)],
)
def test_reads_are_as_many_as_the_closed_form_says(ignore: float, published: float, reads: float) -> None:
    task, length, count = FlipFlop(ignore=ignore), 512, 2000
    assert task.expected_reads(length) == pytest.approx(1 + (length / 2 - 2) * (1 - ignore) / 2)
    assert task.expected_reads(length) == pytest.approx(reads, rel=2e-3)
    assert task.expected_reads(length) == pytest.approx(published, rel=5e-3)
    drawn = draw(task, length, count).scored_BT.sum(dim=1).double()
    rate = (1 - ignore) / 2
    deviation = ((length / 2 - 2) * rate * (1 - rate) / count) ** 0.5
    assert abs(float(drawn.mean()) - task.expected_reads(length)) < 4 * deviation


@pytest.mark.parametrize("write", [0.0, 0.05, 0.3, 0.5])
@pytest.mark.parametrize("length", [4, 6, 128])
def test_reads_are_as_many_as_the_closed_form_says_whatever_is_written(write: float, length: int) -> None:
    task, count = FlipFlop(ignore=0.5, write=write), 4000
    rate, drawn = 0.5 - write, draw(task, length, count).scored_BT.sum(dim=1).double()
    assert task.expected_reads(length) == pytest.approx(1 + (length / 2 - 2) * rate)
    deviation = ((length / 2 - 2) * rate * (1 - rate) / count) ** 0.5
    assert abs(float(drawn.mean()) - task.expected_reads(length)) <= 4 * deviation


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, (0.1, 0.1, 0.8)),
        ({"ignore": 0.98}, (0.01, 0.01, 0.98)),
        ({"write": 0.05}, (0.05, 0.15, 0.8)),
        ({"ignore": 0.5, "write": 0.5}, (0.5, 0.0, 0.5)),
        ({"ignore": 0.0, "write": 0.0}, (0.0, 1.0, 0.0)),
        ({"ignore": 1.0}, (0.0, 0.0, 1.0)),
        ({"ignore": 0.8, "write": 0.2}, (0.2, 0.0, 0.8)),
    ],
)
def test_instructions_in_between_are_as_frequent_as_asked_at_every_place(
    chosen: dict[str, Any], expected: tuple[float, ...]
) -> None:
    task = FlipFlop(**chosen)
    assert task.probabilities == pytest.approx(expected)
    assert min(task.probabilities) >= 0
    tokens_BN = draw(task, 12, 6000).tokens_BT[:, ::2]
    for symbol, probability in zip("wri", expected, strict=True):
        share_N = (tokens_BN == task.encode([symbol])[0]).double().mean(dim=0)
        assert share_N[0] == (symbol == "w")
        assert share_N[-1] == (symbol == "r")
        deviation = (probability * (1 - probability) / len(tokens_BN)) ** 0.5
        assert ((share_N[1:-1] - probability).abs() <= 4.5 * deviation + 1e-9).all()


@pytest.mark.parametrize("symbols", [2, 7])
def test_symbols_are_uniform_and_independent_of_each_other_unless_read(symbols: int) -> None:
    task = FlipFlop(ignore=0.5, symbols=symbols)
    batch = draw(task, 40, 3000)
    tape_BT = torch.cat([batch.tokens_BT, batch.targets_BT[:, -1:]], dim=1)
    free_BN = tape_BT[:, ::2] != task.encode(["r"])[0]
    symbol_BN = tape_BT[:, 1::2] - task.encode(["0"])[0]
    assert p_value(symbol_BN[free_BN].bincount(minlength=symbols).tolist(), [1 / symbols] * symbols) > 1e-4
    # Pairs that share no symbol are independent of each other.
    both_BN = free_BN[:, 1::2] & free_BN[:, ::2]
    pairs = (symbol_BN[:, 1::2] * symbols + symbol_BN[:, ::2])[both_BN].bincount(minlength=symbols**2)
    assert p_value(pairs.tolist(), [symbols**-2] * symbols**2) > 1e-4


@pytest.mark.parametrize("symbols", [2, 7])
@pytest.mark.parametrize("test_set", list(FlipFlop.test_sets))
def test_no_symbol_is_the_better_guess_for_a_read(symbols: int, test_set: str) -> None:
    task = FlipFlop(symbols=symbols)
    assert task.chance(12) == task.input_blind(12) == 1 / symbols
    batch = draw(task, 12, 6000, test_set)
    # The last read of each sequence alone: those of one sequence depend on each other.
    last_S = batch.targets_BT[:, -1].bincount(minlength=len(task.vocabulary))[task.encode(["0"])[0] :]
    assert p_value(last_S.tolist(), [1 / symbols] * symbols) > 1e-4


def test_the_far_set_reads_once_what_was_written_first() -> None:
    for sequence in sequences(FlipFlop(), draw(FlipFlop(ignore=0.1), 64, 200, "far")):
        assert sequence[::2] == ["w", *"i" * 30, "r"]
        assert sequence[-1] == sequence[1]


def test_far_sequences_ignore_symbols_of_both_kinds() -> None:
    ignored = {
        symbol for sequence in sequences(FlipFlop(), draw(FlipFlop(), 12, 64, "far")) for symbol in sequence[3:-2:2]
    }
    assert ignored == {"0", "1"}


# Lengths and options --------------------------------------------------------------------------------------------------


def test_long_sequences_can_be_drawn() -> None:
    batch = draw(FlipFlop(), torch.tensor([2048, 4, 1024]))
    assert batch.valid_BT.sum(dim=1).tolist() == [2047, 3, 1023]
    assert batch.padded


@pytest.mark.parametrize(
    ("lengths", "says"),
    [("4-8", "--{} asks for length 5, but .* 4 or 6"), ("2:8:2", "--{} asks for length 2, but the shortest .* is 4")],
)
def test_odd_and_short_lengths_are_refused_with_those_nearby(lengths: str, says: str) -> None:
    for flag, name in (("train_lengths", "train-lengths"), ("test_lengths", "test-lengths")):
        asked = {"task": "flip-flop", "pe": "nope", "train_lengths": "4:8:2", "test_lengths": "6", flag: lengths}
        with pytest.raises(UserError, match=says.format(name)):
            building.experiment(**asked)


def test_training_looks_only_at_lengths_that_there_are() -> None:
    made = building.experiment(task="flip-flop", pe="nope", train_lengths="4:30:2", test_lengths="6")
    assert experiments.development_lengths(made) == (38, 60)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("ignore=0.1,0.98", [FlipFlop(ignore=0.1), FlipFlop(ignore=0.98)]),
        ("write=0.02,0.1,0.2", [FlipFlop(write=0.02), FlipFlop(write=0.1), FlipFlop(write=0.2)]),
    ],
)
def test_probabilities_of_instructions_are_axes(axis: str, expected: list[FlipFlop]) -> None:
    made = building.experiment(task="flip-flop", pe="nope", train_lengths="4:8:2", test_lengths="6")
    swept = experiments.with_sweep(made, TopLevel(test_lengths="512", axis=axis))
    assert [test_set.task for test_set in swept.test_sets()] == expected
    assert with_axis(FlipFlop(), "write", 0.02).probabilities == pytest.approx((0.02, 0.18, 0.8))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"ignore": 1.1}, "flip-flop.ignore should be at most 1, not 1.1"),
        ({"ignore": -0.1}, "flip-flop.ignore should be at least 0, not -0.1"),
        ({"ignore": 0.8, "write": 0.3}, "set flip-flop.write to at most 0.2"),
        ({"write": "often"}, "flip-flop.write should be a number, not 'often'"),
        ({"symbols": 1}, "flip-flop.symbols should be at least 2, not 1"),
        ({"loss": "read"}, "reads or all, not 'read'"),
    ],
)
def test_bad_options_are_refused_in_one_line(values: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as refused:
        options.read(FlipFlop, values, "flip-flop")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)

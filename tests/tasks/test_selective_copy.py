"""Selective copy: both published tapes, where the kept symbols stand, and how blanks are counted."""

from __future__ import annotations

import itertools
from collections import Counter
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
from algolen.random import Random
from algolen.task import Layout
from algolen.tasks.selective_copy import EDGES, SelectiveCopy
from tests import building
from tests.tasks.test_addition import p_value


def draw(task: SelectiveCopy, length: int | Tensor, count: int = 64, test_set: str = "random", seed: int = 0) -> Batch:
    lengths_B = torch.full((count,), length) if isinstance(length, int) else length
    random = Random.of(seed, "test", examples_B=torch.arange(len(lengths_B)))
    return task.sample_test(test_set, lengths_B, random)


def tapes(task: SelectiveCopy, batch: Batch) -> list[tuple[list[str], list[str], list[str]]]:
    """The input of each example, what is read from its first `=` on, and what is to be predicted."""
    found = []
    for row in range(len(batch)):
        symbols = task.decode(batch.tokens_BT[row][batch.valid_BT[row]].tolist())
        targets = task.decode(batch.targets_BT[row][batch.scored_BT[row]].tolist())
        asked = symbols.index("=")
        assert batch.scored_BT[row].nonzero()[0] == asked
        if task.answer == "suffix":
            assert symbols.pop(0) == "[EOS]"
            asked -= 1
        found.append((symbols[:asked], symbols[asked:], targets))
    return found


def places(task: SelectiveCopy, batch: Batch) -> list[tuple[int, ...]]:
    """Where the kept symbols of each example stand in its input."""
    return [
        tuple(place for place, symbol in enumerate(written) if symbol != ".") for written, _, _ in tapes(task, batch)
    ]


@st.composite
def tasks(draw: st.DrawFn) -> SelectiveCopy:
    counted = draw(st.sampled_from(["each", "total"]))
    blanks = draw(st.floats(0, 4) if counted == "each" else st.integers(0, 300).map(float))
    return SelectiveCopy(blanks, counted, draw(st.integers(2, 100)), draw(st.sampled_from(["suffix", "markers"])))


# The published tapes --------------------------------------------------------------------------------------------------


def test_golden_tapes() -> None:
    suffix, markers = SelectiveCopy(), SelectiveCopy(answer="markers")
    assert suffix.oracle(["[EOS]", *"d.bb.c=????"]) == dict(enumerate([*"dbbc", "[EOS]"], start=7))
    assert markers.oracle([*"d.bb.c===="]) == dict(enumerate("dbbc", start=6))
    assert suffix.layout is Layout.SUFFIX
    assert markers.layout is Layout.LABELS


def test_a_sampled_tape_stays_what_it_is() -> None:
    drawn = {}
    for answer, test_set in itertools.product(["suffix", "markers"], SelectiveCopy.test_sets):
        task = SelectiveCopy(answer=answer, blanks=2.0)  # type: ignore[arg-type]
        ((written, read, targets),) = tapes(task, draw(task, 4, 1, test_set))
        drawn[answer, test_set] = "".join(written), "".join(read), "".join(targets)
    assert drawn == {
        ("suffix", "random"): (".b..dn..g...", "=bdng", "bdng[EOS]"),
        ("suffix", "edge"): ("b..d..n..g..", "=bdng", "bdng[EOS]"),
        ("markers", "random"): (".b..dn..g...", "====", "bdng"),
        ("markers", "edge"): ("b..d..n..g..", "====", "bdng"),
    }, "raise the version"


@given(tasks(), st.integers(1, 300), st.sampled_from(list(SelectiveCopy.test_sets)), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_the_answer_is_what_is_left_without_the_blanks(
    task: SelectiveCopy, length: int, test_set: str, seed: int
) -> None:
    batch = draw(task, length, 8, test_set, seed)
    suffix = task.answer == "suffix"
    assert batch.tape_length == task.tape_length(length)
    for row, (written, read, targets) in enumerate(tapes(task, batch)):
        kept = [symbol for symbol in written if symbol != "."]
        assert len(kept) == length
        assert set(kept) <= set(task.vocabulary[4:])
        none = test_set == "edge" and task.stratum_name(test_set, int(batch.stratum_BT[row].max())) == "no blanks"
        assert len(written) == (length if none else task.slots(length))
        assert targets == ([*kept, "[EOS]"] if suffix else kept)
        assert read == (["=", *kept] if suffix else ["="] * length)
    assert torch.equal(batch.trained_BT, batch.scored_BT)
    assert (batch.unit_BT.amax(dim=1) == 0).all()
    assert (batch.size_BA == length).all()


def test_published_settings_can_be_said() -> None:
    mamba = SelectiveCopy(answer="markers", blanks_counted="total", blanks=4096)
    assert len(mamba.vocabulary) == 2 + 16, "padding and [EOS] beside blank, marker and 14 values"
    assert mamba.tape_length(16) == 4096 + 16 + 16
    for blanks in (128, 256, 512):
        assert SelectiveCopy(blanks_counted="total", blanks=blanks).slots(40) == 40 + blanks
    assert SelectiveCopy(blanks=0.5).slots(128) == 128 + 64


@pytest.mark.parametrize(
    ("chosen", "length", "slots"),
    [
        ({}, 7, 14),
        ({"blanks": 2.5}, 1, 4),
        ({"blanks": 2.5}, 2, 7),
        ({"blanks": 0.3}, 1, 1),
        ({"blanks": 0.3}, 5, 7),
        ({"blanks": 7, "blanks_counted": "total"}, 1, 8),
        ({"blanks": 7, "blanks_counted": "total"}, 30, 37),
        ({"blanks": 0}, 9, 9),
    ],
)
def test_blanks_are_counted_for_each_symbol_or_in_total(chosen: dict[str, Any], length: int, slots: int) -> None:
    task = SelectiveCopy(**chosen)
    assert task.slots(length) == slots
    assert {len(written) for written, _, _ in tapes(task, draw(task, length, 8))} == {slots}


@given(st.floats(0, 50), st.lists(st.integers(1, 300), min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_mixed_lengths_have_their_own_numbers_of_blanks(blanks: float, lengths: list[int]) -> None:
    task = SelectiveCopy(blanks)
    batch = draw(task, torch.tensor(lengths))
    assert [len(written) for written, _, _ in tapes(task, batch)] == [task.slots(length) for length in lengths]
    assert batch.padded == (len(set(lengths)) > 1)


# Frequencies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["suffix", "markers"])
def test_every_subset_of_places_is_as_likely(answer: Any) -> None:
    task, count = SelectiveCopy(answer=answer), 8000
    seen = Counter(places(task, draw(task, torch.tensor([3, 5]).repeat(count)))[::2])
    subsets = list(itertools.combinations(range(6), 3))
    assert set(seen) == set(subsets)
    assert p_value([seen[subset] for subset in subsets], [1 / len(subsets)] * len(subsets)) > 1e-4


@pytest.mark.parametrize("symbols", [2, 14])
def test_symbols_are_uniform_and_independent_so_no_fixed_answer_beats_chance(symbols: int) -> None:
    task = SelectiveCopy(alphabet=symbols)
    batch = draw(task, 2, 20_000)
    answers = Counter("".join(targets[:2]) for _, _, targets in tapes(task, batch))
    cases = ["".join(pair) for pair in itertools.product(task.vocabulary[4:], repeat=2)]
    assert set(answers) <= set(cases)
    assert p_value([answers[case] for case in cases], [1 / len(cases)] * len(cases)) > 1e-4
    assert task.chance(2) == task.input_blind(2) == symbols**-2


def test_symbols_do_not_follow_from_places() -> None:
    task = SelectiveCopy(alphabet=2)
    first = Counter((written.index(targets[0]), targets[0]) for written, _, targets in tapes(task, draw(task, 1, 4000)))
    assert p_value([first[case] for case in itertools.product((0, 1), "ab")], [1 / 4] * 4) > 1e-4


# The edge set ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["suffix", "markers"])
def test_the_edge_set_holds_every_kind_it_names(answer: Any) -> None:
    for chosen, alternating in (({}, (0, 2, 4)), ({"blanks": 2.0}, (0, 3, 6)), ({"blanks": 0.5}, (0, 2, 4))):
        task = SelectiveCopy(answer=answer, **chosen)  # type: ignore[arg-type]
        slots, batch = task.slots(3), draw(task, 3, 400, "edge")
        found: dict[str, set[tuple[int, ...]]] = {name: set() for name in EDGES}
        lengths: dict[str, set[int]] = {name: set() for name in EDGES}
        for row, (own, (written, _, _)) in enumerate(zip(places(task, batch), tapes(task, batch), strict=True)):
            name = task.stratum_name("edge", int(batch.stratum_BT[row][batch.scored_BT[row]][0]))
            found[name].add(own)
            lengths[name].add(len(written))
        assert found == {
            "blanks first": {tuple(range(slots - 3, slots))},
            "blanks last": {(0, 1, 2)},
            "evenly spread": {alternating},
            "no blanks": {(0, 1, 2)},
        }
        assert lengths == {name: {3 if name == "no blanks" else slots} for name in EDGES}
        assert batch.padded


@given(st.integers(1, 40), st.integers(0, 120))
@settings(max_examples=60, deadline=None)
def test_gaps_of_the_evenly_spread_differ_by_one_at_most(length: int, blanks: int) -> None:
    task = SelectiveCopy(blanks, "total")
    batch = draw(task, length, 12, "edge")
    for row, own in enumerate(places(task, batch)):
        if task.stratum_name("edge", int(batch.stratum_BT[row].max())) == "evenly spread":
            gaps = [after - before for before, after in itertools.pairwise((*own, task.slots(length)))]
            assert own[0] == 0
            assert max(gaps) - min(gaps) <= 1


# Options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["suffix", "markers"])
def test_kept_and_blank_symbols_are_counted_independently_in_one_sweep(answer: str) -> None:
    """As many kept as the nominal length, as many blanks as the axis says."""
    options = {"selective-copy": {"answer": answer, "blanks_counted": "total", "blanks": 6}}
    made = building.experiment(options, task="selective-copy", pe="nope")  # type: ignore[arg-type]
    swept = experiments.with_sweep(made, TopLevel(test_lengths="2,5", axis="blanks=0,3,12", examples=4))
    counted = []
    for test_set in swept.test_sets():
        task = test_set.task
        assert isinstance(task, SelectiveCopy)
        for written, _, targets in tapes(task, test_set.batch(0, 4, building.CPU)):
            counted.append((len(targets) - (answer == "suffix"), len(written) - written.count("."), written.count(".")))
    assert set(counted) == {(kept, kept, blanks) for kept in (2, 5) for blanks in (0, 3, 12)}


def test_dense_and_sparse_tests_are_an_axis() -> None:
    made = building.experiment({"selective-copy": {"blanks": 4.0}}, task="selective-copy", pe="nope")
    asked = TopLevel(test_lengths="3", axis="blanks=2,8")
    swept = experiments.with_sweep(made, asked).test_sets()
    assert [test_set.task.tape_length(3) for test_set in swept] == [2 + 3 + 6 + 3, 2 + 3 + 24 + 3]


def test_markers_can_be_trained_with_bidirectional_attention_and_a_suffix_cannot() -> None:
    both: dict[str, dict[str, Any]] = {"model": {"attention": "bidirectional"}, "selective-copy": {"answer": "markers"}}
    assert not building.experiment(both, task="selective-copy", pe="learned").causal
    both["selective-copy"]["answer"] = "suffix"
    with pytest.raises(UserError, match="feeds its answer back"):
        building.experiment(both, task="selective-copy", pe="learned")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"blanks": -1}, "selective-copy.blanks should be at least 0, not -1"),
        ({"blanks": 1.5, "blanks_counted": "total"}, "selective-copy.blanks=1.5 should be a whole number"),
        ({"blanks_counted": "all"}, "each or total, not 'all'"),
        ({"alphabet": 1}, "selective-copy.alphabet should be at least 2, not 1"),
        ({"answer": "marker"}, "suffix or markers, not 'marker'"),
    ],
)
def test_bad_options_are_refused_in_one_line(values: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as refused:
        options.read(SelectiveCopy, values, "selective-copy")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)

"""What every task promises, for every task that is found, over its options and test sets.

A new task needs nothing here: its defaults and every value of its yes/no and either/or options are tried by
themselves. `MORE` names combinations worth trying beside them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import typing
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from algolen import options, registry
from algolen.batch import STRUCTURES, Batch, Structure
from algolen.errors import UserError
from algolen.random import Random
from algolen.task import PADDING, Layout, Task
from tests.conftest import CommandLine

MORE: dict[str, list[dict[str, Any]]] = {
    "addition": [
        {"operands": 3},
        {"operands": 4, "reverse_answer": False, "padded": False, "operand_lengths": "independent"},
        {"operands": 10, "padded": False, "reverse_operands": True},
        {"reverse_operands": True, "operand_lengths": "independent", "padded": False},
        {"reverse_answer": False, "padded": False},
        {"reverse_answer": False, "padded": False, "id_direction": "most"},
        {"padded": False, "id_direction": "most", "operand_lengths": "independent"},
        {"reverse_answer": False, "id_direction": "most"},
    ],
    "flip-flop": [
        {"ignore": 0.1, "symbols": 16, "loss": "all"},
        {"ignore": 0.5, "write": 0.5},
        {"ignore": 1.0},
        {"ignore": 0.0, "write": 0.0, "symbols": 300},
    ],
    "selective-copy": [
        {"blanks": 2.5, "alphabet": 2},
        {"blanks": 0.3, "alphabet": 60, "answer": "markers"},
        {"blanks": 0.0},
        {"blanks": 0.0, "answer": "markers"},
        {"blanks": 7.0, "blanks_counted": "total"},
        {"blanks": 16.0, "blanks_counted": "total", "answer": "markers"},
    ],
    "parity": [{"scratchpad": True, "bits": "ones"}],
    "copy": [{"alphabet": 2}, {"alphabet": 300}, {"alphabet": 300, "unique": True}],
    "reverse": [{"alphabet": 2}, {"alphabet": 300, "unique": True}],
}

DEVICES = [name for name, there in (("cuda", torch.cuda.is_available()), ("mps", torch.mps.is_available())) if there]


def choices(cls: type[Task]) -> Iterator[dict[str, Any]]:
    """The defaults, then each other value of each option that has few."""
    yield {}
    for field in dataclasses.fields(cls):
        hint = typing.get_type_hints(cls)[field.name]
        if hint is bool:
            yield {field.name: not field.default}
        elif typing.get_origin(hint) is typing.Literal:
            yield from ({field.name: value} for value in typing.get_args(hint) if value != field.default)
    yield from MORE.get(cls.name, [])


def variants() -> Iterator[Any]:
    for name, cls in registry.load().tasks.items():
        for chosen in choices(cls):
            written = ",".join(f"{key}={value}" for key, value in chosen.items())
            yield pytest.param(options.read(cls, chosen, name), id=f"{name}:{written}")


VARIANTS = list(variants())
WITH_TEST_SETS = [
    pytest.param(*variant.values, test_set, id=f"{variant.id}:{test_set}")
    for variant in VARIANTS
    for test_set in variant.values[0].test_sets
]

every_task = pytest.mark.parametrize("task", VARIANTS)
every_test_set = pytest.mark.parametrize(("task", "test_set"), WITH_TEST_SETS)


def draw(
    task: Task, lengths: int | Tensor, count: int = 64, test_set: str = "random", seed: int = 0, first: int = 0
) -> Batch:
    """Examples `first` and on, of one length or of given ones; where the task lacks one, of one nearby."""
    if isinstance(lengths, int):
        lengths = torch.full((count,), lengths)
    examples_B = torch.arange(first, first + len(lengths))
    return task.sample_test(test_set, existing(task, lengths), Random.of(seed, "x", examples_B=examples_B))


def existing(task: Task, lengths_B: Tensor) -> Tensor:
    """For each length the first one that the task has, going up a little and then down."""
    near = (itertools.chain(range(length, length + 8), range(length - 1, 0, -1)) for length in lengths_B.tolist())
    return torch.tensor([next(existing_of(task, lengths)) for lengths in near])


def existing_of(task: Task, lengths: Iterable[int]) -> Iterator[int]:
    """Those of some lengths that the task has."""
    for length in lengths:
        with contextlib.suppress(UserError):
            task.check_length(length)
            yield length


def mixed(count: int = 64, longest: int = 12) -> Tensor:
    """Lengths of 1 to `longest`, all of them and in no order."""
    return 1 + torch.arange(count) * 7 % longest


def tensors(batch: Batch) -> dict[str, Tensor]:
    """All tensors of a batch, those of its structure among them."""
    parts: dict[str, Tensor | None] = {
        name: getattr(holder, name)
        for holder in (batch, batch.structure)
        for name in (field.name for field in dataclasses.fields(holder))
    }
    return {name: value for name, value in parts.items() if isinstance(value, Tensor)}


def same_examples(one: Batch, other: Batch) -> None:
    """Asserts that two batches hold the same examples, whatever the width of their tapes."""
    width = min(one.tape_length, other.tape_length)
    assert not one.valid_BT[:, width:].any()
    assert not other.valid_BT[:, width:].any()
    valid_BT = one.valid_BT[:, :width]
    mine, theirs = tensors(one), tensors(other)
    assert mine.keys() == theirs.keys()
    assert torch.equal(mine.pop("size_BA"), theirs.pop("size_BA"))
    for name, value in mine.items():
        torch.testing.assert_close(
            value[:, :width][valid_BT], theirs[name][:, :width][valid_BT], rtol=0, atol=0, msg=name
        )


def same_structure(one: Structure, other: Structure, rows_BT: Tensor) -> bool:
    """Whether two structures agree at the tokens of `rows_BT`."""
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one)]
    return all(a is b is None or torch.equal(a[rows_BT], b[rows_BT]) for a, b in pairs)


# Answers --------------------------------------------------------------------------------------------------------------


@every_test_set
def test_targets_are_what_the_oracle_derives_from_the_rest_of_the_tape(task: Task, test_set: str) -> None:
    batch = draw(task, mixed(240, longest=20), test_set=test_set)
    for row in range(len(batch)):
        symbols = task.decode(batch.tokens_BT[row][batch.valid_BT[row]].tolist())
        scored = batch.scored_BT[row].nonzero()[:, 0].tolist()
        if task.layout is Layout.SUFFIX:
            symbols[scored[0] + 1 :] = ["?"] * len(symbols[scored[0] + 1 :])
        targets = task.decode(batch.targets_BT[row][scored].tolist())
        assert dict(zip(scored, targets, strict=True)) == dict(task.oracle(symbols))


@every_test_set
def test_batches_are_well_formed(task: Task, test_set: str) -> None:
    for lengths_B in (mixed(), torch.full((8,), 5)):
        batch = draw(task, lengths_B, test_set=test_set)
        shape = (len(lengths_B), batch.tape_length)
        for name, value in tensors(batch).items():
            assert value.dtype == (
                torch.bool if name in ("trained_BT", "scored_BT", "valid_BT", "digit_BT") else torch.int64
            )
            if name != "size_BA":
                assert value.shape[:2] == shape, name
        assert batch.size_BA.shape == (len(lengths_B), batch.size_BA.shape[1])
        assert batch.size_BA.min() >= 1
        for tokens_BT in (batch.tokens_BT, batch.targets_BT):
            assert tokens_BT.min() >= 0
            assert tokens_BT.max() < len(task.vocabulary)
        assert (batch.valid_BT.int().diff(dim=1) <= 0).all(), "padding stands on the right"
        assert batch.valid_BT[:, 0].all()
        assert (batch.tokens_BT[~batch.valid_BT] == PADDING).all()
        assert (batch.tokens_BT[batch.valid_BT] != PADDING).all()
        assert batch.padded or batch.valid_BT.all()
        assert not (batch.trained_BT & ~batch.valid_BT).any()
        assert not (batch.scored_BT & ~batch.valid_BT).any()
        assert batch.scored_BT.any(dim=1).all()
        assert torch.equal(batch.unit_BT >= 0, batch.scored_BT)
        assert (batch.unit_BT[~batch.scored_BT] == -1).all()
        assert (batch.targets_BT[batch.trained_BT | batch.scored_BT] != PADDING).all()


@every_test_set
def test_a_suffix_is_scored_from_its_first_token_to_the_end_as_one_unit(task: Task, test_set: str) -> None:
    if task.layout is not Layout.SUFFIX:
        pytest.skip("not a suffix")
    batch = draw(task, mixed(), test_set=test_set)
    from_first_BT = batch.scored_BT.cumsum(dim=1) > 0
    assert torch.equal(batch.scored_BT, from_first_BT & batch.valid_BT)
    assert (batch.unit_BT.amax(dim=1) == 0).all()
    fed_back_BT = batch.scored_BT[:, :-1] & batch.scored_BT[:, 1:]
    assert torch.equal(batch.targets_BT[:, :-1][fed_back_BT], batch.tokens_BT[:, 1:][fed_back_BT])


@every_test_set
def test_a_unit_has_one_stratum_and_strata_have_names_of_their_own(task: Task, test_set: str) -> None:
    batch = draw(task, mixed(256, longest=30), test_set=test_set)
    units = batch.unit_BT + (batch.unit_BT.max() + 1) * torch.arange(len(batch))[:, None]
    pairs = torch.stack([units[batch.scored_BT], batch.stratum_BT[batch.scored_BT]], dim=1).unique(dim=0)
    assert len(pairs) == len(pairs[:, 0].unique())
    strata = pairs[:, 1].unique().tolist()
    names = {task.stratum_name(test_set, stratum) for stratum in strata}
    assert len(names) == len(strata)
    assert len(strata) == 1 or "" not in names


# Bounds ---------------------------------------------------------------------------------------------------------------


@every_task
def test_tape_length_and_largest_id_are_never_exceeded_and_somewhere_reached(task: Task) -> None:
    short, large = set(), set()
    for length in itertools.islice(existing_of(task, range(1, 20)), 4):
        for test_set in task.test_sets:
            batch = draw(task, length, 400, test_set)
            longest = int(batch.valid_BT.sum(dim=1).max())
            assert longest <= batch.tape_length <= task.tape_length(length)
            short.add(task.tape_length(length) - longest)
            coupled_BTA = batch.structure.coupled_BTA
            if coupled_BTA is not None:
                assert coupled_BTA.shape[2] == task.coupled_axes
                assert coupled_BTA.min() >= 0
                assert int(coupled_BTA.max()) <= task.largest_coupled_id(length)
                large.add(task.largest_coupled_id(length) - int(coupled_BTA.max()))
    assert 0 in short
    assert 0 in large or "coupled" not in task.structures


@every_task
def test_no_run_of_digits_is_longer_than_the_longest_number_and_one_is_as_long(task: Task) -> None:
    if "digit" not in task.structures:
        pytest.skip("no digits")
    for length in existing_of(task, (1, 2, 5, 9)):
        digit_BT = draw(task, length, 400, first=length).structure.digit_BT
        assert digit_BT is not None
        runs = ["".join("d" if digit else " " for digit in row).split() for row in digit_BT.tolist()]
        assert max(len(run) for row in runs for run in row) == task.longest_number(length)


@every_test_set
def test_test_sets_reach_long_lengths(task: Task, test_set: str) -> None:
    for length in (50, 300):
        batch = draw(task, length, 16, test_set)
        assert batch.valid_BT.sum(dim=1).max() <= task.tape_length(length)
        if "coupled" in task.structures:
            assert batch.structure.coupled_BTA is not None
            assert batch.structure.coupled_BTA.max() <= task.largest_coupled_id(length)


@every_task
def test_reference_accuracies_are_probabilities(task: Task) -> None:
    for length in existing_of(task, (1, 2, 3, 4, 5, 20, 300, 2000)):
        assert 0 <= task.chance(length) <= 1
        assert 0 <= task.input_blind(length) <= 1


@every_test_set
def test_tapes_of_a_nominal_length_are_equally_long_whatever_is_on_them(task: Task, test_set: str) -> None:
    """So that ids that are drawn at test depend on the nominal length alone."""
    for first, count in ((0, 1), (5, 3)):
        batch = draw(task, 6, count, test_set, first=first)
        assert batch.tape_length == task.tape_length(6)


# Structure ------------------------------------------------------------------------------------------------------------


@every_task
def test_the_declared_structures_are_supplied_and_no_others(task: Task) -> None:
    structure = draw(task, 5).structure
    assert task.structures <= set(STRUCTURES)
    assert {name for name in STRUCTURES if structure.has(name)} == task.structures


@every_test_set
def test_structure_is_read_off_the_tokens(task: Task, test_set: str) -> None:
    batch = draw(task, mixed(), test_set=test_set)
    assert same_structure(task.structure(batch.tokens_BT, batch.size_BA), batch.structure, batch.valid_BT)


@every_task
def test_structure_depends_on_the_prompt_and_earlier_tokens_alone_where_the_task_says_so(task: Task) -> None:
    if task.layout is not Layout.SUFFIX:
        pytest.skip("no answer is fed back")
    agreed = []
    for test_set in task.test_sets:
        batch = draw(task, mixed(), test_set=test_set)
        for cut in range(1, batch.tape_length):
            read_BT = batch.valid_BT & (batch.scored_BT[:, :cut].any(dim=1))[:, None]
            prefix = task.structure(batch.tokens_BT[:, :cut], batch.size_BA)
            whole = Structure(
                *(
                    None if (v := getattr(batch.structure, f.name)) is None else v[:, :cut]
                    for f in dataclasses.fields(Structure)
                )
            )
            agreed.append(same_structure(prefix, whole, read_BT[:, :cut]))
    assert all(agreed) == task.structure_is_causal


@every_task
def test_no_length_below_the_smallest_exists_and_that_one_does(task: Task) -> None:
    assert next(existing_of(task, itertools.count())) == task.smallest_length


@every_test_set
def test_nothing_is_predicted_before_the_place_from_which_on_a_batch_says_so(task: Task, test_set: str) -> None:
    for lengths_B in (mixed(), torch.full((8,), 5)):
        batch = draw(task, lengths_B, test_set=test_set)
        assert batch.predicted_from >= 0
        assert not (batch.trained_BT | batch.scored_BT)[:, : batch.predicted_from].any()


# Randomness -----------------------------------------------------------------------------------------------------------


@every_test_set
def test_examples_do_not_depend_on_how_the_batch_is_split(task: Task, test_set: str) -> None:
    lengths_B = mixed()
    whole = draw(task, lengths_B, test_set=test_set)
    same_examples(whole.rows(7, 20), draw(task, lengths_B[7:20], test_set=test_set, first=7))


@every_test_set
def test_examples_do_not_depend_on_the_lengths_of_their_neighbours(task: Task, test_set: str) -> None:
    lengths_B = mixed(24, longest=8)
    batch = draw(task, lengths_B, test_set=test_set)
    for row, length in enumerate(lengths_B.tolist()):
        same_examples(batch.rows(row, row + 1), draw(task, length, 24, test_set).rows(row, row + 1))


@every_test_set
def test_the_same_random_gives_the_same_batch_and_another_seed_another(task: Task, test_set: str) -> None:
    one, again, other = (draw(task, mixed(), test_set=test_set, seed=seed) for seed in (0, 0, 1))
    for name, value in tensors(one).items():
        assert torch.equal(value, tensors(again)[name])
    assert not torch.equal(one.tokens_BT, other.tokens_BT)


@every_test_set
def test_examples_of_a_batch_differ(task: Task, test_set: str) -> None:
    distinct = draw(task, 32, 64, test_set).tokens_BT.unique(dim=0)
    assert len(distinct) > (50 if test_set == "random" else 1)


@pytest.mark.parametrize("device", DEVICES)
@every_test_set
def test_batches_are_the_same_on_every_device(task: Task, test_set: str, device: str) -> None:
    lengths_B = mixed()
    random = Random.of(0, "x", examples_B=torch.arange(len(lengths_B), device=device))
    batch = task.sample_test(test_set, existing(task, lengths_B), random)
    assert all(value.device.type == device for value in tensors(batch).values())
    same_examples(batch.to("cpu"), draw(task, lengths_B, test_set=test_set))


# Declarations ---------------------------------------------------------------------------------------------------------


@every_task
def test_the_vocabulary_starts_with_padding_and_names_every_token_once(task: Task) -> None:
    assert task.vocabulary[PADDING] == "[PAD]"
    assert len(set(task.vocabulary)) == len(task.vocabulary)
    assert task.decode(task.encode(task.vocabulary)) == list(task.vocabulary)


@every_task
def test_axes_are_numbers_that_do_not_change_the_vocabulary(task: Task) -> None:
    for axis in task.axes:
        value = getattr(task, axis)
        assert value is None or type(value) in (int, float)
        other = 0.125 if value is None else value + 1 if type(value) is int else value / 2
        try:
            varied = options.read(type(task), options.plain(task) | {axis: other}, "")
        except UserError:
            continue
        assert varied.vocabulary == task.vocabulary
        assert getattr(varied, axis) == other


@every_task
def test_tasks_describe_themselves(task: Task) -> None:
    assert task.version >= 1
    assert task.source
    assert next(iter(task.test_sets)) == "random"
    assert all(task.test_sets.values())
    assert all(option.description for option in options.describe(type(task)))


# Use ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.load().tasks)
def test_the_presets_suit_every_task(name: str, algolen: CommandLine) -> None:
    pe = "coupling" if "coupled" in options.read(registry.load().task(name), {}, name).structures else "nope"
    planned = algolen("train", "--task", name, "--pe", pe, "--dry-run")
    assert planned.code == 0, planned.stderr
    few = ("--preset", "smoke", "--set", "train.steps=5", "--device", "cpu")
    trained = algolen("train", "--task", name, "--pe", pe, *few)
    assert trained.code == 0, trained.stderr

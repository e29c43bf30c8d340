"""Every pair of an id map and an encoding trains a step and is swept on a long tape, or is refused with the reason.

Pairs are made from the encodings that are found, so that a new one is tried with all others by itself. Those that are
refused are named here: a new refusal fails until it is written down with its reason.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest
import torch

from algolen.config import Sections
from algolen.errors import Refusal
from algolen.evaluation.sweep import evaluate
from algolen.experiment import Experiment
from algolen.phase import Phase
from algolen.training.step import Stepper
from tests import building

TAPE = 300
EXAMPLES = 4
TRAIN_LENGTHS = "4:8:2"
"""Lengths that every task has."""
TABLES = ("ids", "table", "distances")
"""What options are called that say how far ids and distances reach."""
GROWING: Sections = {"parity": {"scratchpad": True}}
"""Options without which the ids of a task would not grow with the length."""

MAPS = sorted(name for name, cls in building.REGISTRY.encodings.items() if cls.maps_ids)
OTHERS = sorted(name for name, cls in building.REGISTRY.encodings.items() if not cls.maps_ids)

REFUSED = {
    "*+nope": "nope means no position encoding at all; leave it out: '{maps}'",
    "*+coupling+*": "coupling gives ids of its own, so that {first} before it would do nothing",
    **{
        combination: f"{name} goes by places on the tape and would not see the ids of {{first}}; name what reads them, "
        "as in '{written}+{reader}', or leave {first} out"
        for name, first in itertools.product(("randomized-alibi", "randomized-relative"), MAPS)
        for combination in (f"{first}+{name}", f"{first}+*+{name}")
    },
    "coupling+offset+*": "offset would shift ids that have a random start of their own; leave it out",
}
"""Pairs and chains that are refused whatever the task, and why; of several that fit, the first one counts."""

REFUSED_ON = {
    "flip-flop": {
        "coupling+*": "coupling needs the 'coupled' structure of tokens, which task flip-flop lacks",
        "*+abacus": "abacus needs the 'digit' structure of tokens, which task flip-flop lacks",
    },
    "selective-copy": {
        "coupling+*": "coupling needs the 'coupled' structure of tokens, which task selective-copy lacks",
        "*+abacus": "abacus needs the 'digit' structure of tokens, which task selective-copy lacks",
    },
}
"""Pairs that some tasks cannot serve."""


@dataclass(frozen=True)
class Case:
    """A combination on a task."""

    written: str
    task: str = "addition"

    def plan(self, sections: Sections) -> Experiment:
        options = GROWING.get(self.task, {})
        task = building.task(self.task, **options)
        longest = next(length for length in itertools.count(4, 2) if task.tape_length(length) >= TAPE)
        return building.experiment(
            {"model": {"layers": 2}, "train": {"batch": 4, "warmup": 0}, self.task: options, **sections},
            task=self.task,
            pe=self.written,
            train_lengths=TRAIN_LENGTHS,
            test_lengths=str(longest),
            examples=str(EXAMPLES),
        )

    @property
    def refusal(self) -> str | None:
        """What its refusal has to say."""
        first, *_ = names = self.written.split("+")
        for combination, reason in {**REFUSED, **REFUSED_ON.get(self.task, {})}.items():
            if fnmatchcase(self.written, combination):
                reader = building.REGISTRY.encoding(first).reader
                return reason.format(written=self.written, first=first, maps="+".join(names[:-1]), reader=reader)
        return None

    @property
    def tables(self) -> set[tuple[str, str]]:
        """Encodings and their options that say how far ids reach."""
        members = () if self.refusal else building.expression(self.written).members
        return {(own.cls.name, table) for own in members for table in TABLES if hasattr(own.options, table)}


def kinds() -> dict[str, str]:
    """An encoding of each kind; of the rotary ones, the biases and so on the first one by name."""
    first: dict[str, str] = {}
    for name in OTHERS:
        first.setdefault(building.REGISTRY.encoding(name).kind, name)
    return first


def cases() -> Iterator[Case]:
    """Every map with every other encoding on every task, and on addition every chain of two maps with every other
    encoding and every two others beside each other."""
    for task, first, other in itertools.product(building.REGISTRY.tasks, MAPS, OTHERS):
        yield Case(f"{first}+{other}", task)
    for (first, second), other in itertools.product(itertools.permutations(MAPS, 2), OTHERS):
        yield Case(f"{first}+{second}+{other}")
    for first, second in itertools.combinations([name for name in OTHERS if name != "nope"], 2):
        yield Case(f"{first}+{second}")


def sampled(case: Case) -> bool:
    """Whether `make test` tries it: each map with an encoding of each kind on addition, and each chain with one."""
    *maps, other = case.written.split("+")
    if case.task != "addition" or maps[0] not in MAPS:
        return False
    return other in (kinds().values() if len(maps) == 1 else ("fire",))


def parametrised(chosen: Iterable[Case]) -> pytest.MarkDecorator:
    """Over these cases; those that are not sampled are slow."""
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(
                case,
                id=case.written.replace("+", "-") + ("" if case.task == "addition" else f"-on-{case.task}"),
                marks=() if sampled(case) else pytest.mark.slow,
            )
            for case in chosen
        ],
    )


def trains_a_step(made: Experiment) -> Stepper:
    """The model after one step, with finite loss and gradients and parameters that moved."""
    stepper = Stepper(made.model(0, building.CPU), made.config.train, steps=10)
    before = {name: parameter.detach().clone() for name, parameter in stepper.model.named_parameters()}
    loss = stepper(0, made.data(0, building.CPU).micro_batches(0))
    assert torch.isfinite(loss)
    for name, parameter in stepper.model.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
        assert torch.isfinite(parameter).all(), name
        assert torch.equal(parameter, before[name]) == (not parameter.grad.any()), name
    return stepper


def sweeps(made: Experiment, stepper: Stepper) -> None:
    """Counts of a long test set that add up, under every policy of positions there is."""
    (test_set,) = made.test_sets()
    batch = test_set.batch(0, EXAMPLES, building.CPU)
    assert batch.tape_length >= TAPE
    assert int(batch.valid_BT.sum(dim=1).max()) >= TAPE
    units = int((batch.unit_BT.amax(dim=1) + 1).sum())
    for phase in (Phase.TEST, Phase.EVEN) if made.pe.draws_at_test else (Phase.TEST,):
        total = evaluate(stepper.model, test_set, building.CPU, phase=phase).total
        assert (total.units, total.tokens) == (units, int(batch.scored_BT.sum()))
        assert 0 <= total.exact <= total.units
        assert total.exact <= total.tokens_correct <= total.tokens
        assert 0 < total.loss < float("inf")


@parametrised(cases())
def test_it_trains_a_step_and_sweeps_a_long_tape_or_is_refused_with_the_reason(case: Case) -> None:
    if case.refusal is not None:
        with pytest.raises(Refusal) as refused:
            planned(case, {})
        assert str(refused.value) == case.refusal
        return
    made, _ = planned(case, {})
    sweeps(made, trains_a_step(made))


@parametrised(case for case in cases() if case.tables)
def test_tables_that_are_too_short_are_refused_with_the_sizes_that_just_suffice(case: Case) -> None:
    made, sizes = planned(case, tables(dict.fromkeys(case.tables, 2)))
    assert sizes.keys() == case.tables
    sweeps(made, trains_a_step(made))
    for (name, table), size in sizes.items():
        with pytest.raises(Refusal, match=rf"{name}\.{table}={size - 1}\b.*--set {name}\.{table}={size}$"):
            case.plan(tables({**sizes, (name, table): size - 1}))


def tables(sizes: Mapping[tuple[str, str], int]) -> Sections:
    """The sections of a configuration in which tables have these sizes."""
    return {name: {table: size for (own, table), size in sizes.items() if own == name} for name, _ in sizes}


def planned(case: Case, sections: Sections) -> tuple[Experiment, dict[tuple[str, str], int]]:
    """The experiment once every option is set that a refusal says to set, and what those were.

    A refusal is one line; one about a size says the one that suffices, so that no option is refused twice.
    """
    sections, said = {name: dict(own) for name, own in sections.items()}, {}
    while True:
        try:
            return case.plan(sections), said
        except Refusal as error:
            refused = error
        hint = re.search(r": --set ([\w-]+)\.(\w+)=(\d+)$", str(refused))
        if hint is None:
            raise refused
        name, option, size = hint[1], hint[2], int(hint[3])
        assert (name, option) not in said, str(refused)
        assert "\n" not in str(refused)
        sections.setdefault(name, {})[option] = said[name, option] = size


def test_every_refusal_that_is_named_is_met() -> None:
    for combination in {*REFUSED, *itertools.chain.from_iterable(REFUSED_ON.values())}:
        assert any(fnmatchcase(case.written, combination) for case in cases()), combination


def test_the_sample_has_every_map_with_every_kind_of_encoding() -> None:
    tried = {case.written for case in cases() if sampled(case)}
    assert {f"{first}+{other}" for first in MAPS for other in kinds().values()} <= tried
    assert {"embedding", "rotary", "bias"} <= set(kinds())

"""From a request to checked objects: what is resolved, what is refused before anything is built, what is read back."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from algolen import experiment as experiments
from algolen.config import Sections, TopLevel
from algolen.errors import Refusal, UserError
from algolen.experiment import Experiment
from algolen.tasks.addition import Addition
from tests import building
from tests.building import REGISTRY

CPU = torch.device("cpu")


def made(sections: Sections | None = None, **top: Any) -> Experiment:
    return building.experiment(sections, **top)


def test_options_are_resolved_so_that_nothing_is_left_to_defaults() -> None:
    config = made({"coupling": {"ids": 50}}).config
    assert config.expansion == "coupling+learned"
    assert config.pe == "coupling"
    assert config.pe_options["learned"]["table"] == 51
    assert config.task_options["operands"] == 2
    assert config.versions == {"addition": 1, "coupling": 1, "learned": 1}


def test_what_comes_back_from_the_database_builds_the_same_model_and_data() -> None:
    first = made(
        {"addition": {"operands": 3, "padded": False}, "coupling": {"start": "clipped"}, "train": {"steps": 2}}
    )
    second = experiments.stored(json.loads(json.dumps(first.config.to_dict())), REGISTRY)
    assert second.config == first.config
    assert second.task == first.task
    assert (second.pe.written, second.pe.members) == (first.pe.written, first.pe.members)
    assert second.evaluation.test_lengths == ()
    one, other = first.model(3, CPU).state_dict(), second.model(3, CPU).state_dict()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    mine, theirs = (made.data(3, CPU).micro_batches(1)[0].batch.tokens_BT for made in (first, second))
    assert torch.equal(mine, theirs)


@pytest.mark.parametrize("part", ["addition", "coupling", "learned"])
def test_a_run_of_another_version_is_refused(part: str) -> None:
    stored = made().config.to_dict()
    stored["versions"] = {**stored["versions"], part: 99}
    with pytest.raises(UserError, match=f"version 99 of {part}, this algolen has 1"):
        experiments.stored(stored, REGISTRY)


def test_seeds_of_parameters_and_data_can_be_held_apart() -> None:
    apart = made({"train": {"init_seed": 5, "data_seed": 6}})
    together = made()
    assert torch.equal(_weights(apart, 0), _weights(together, 5))
    assert torch.equal(_weights(apart, 0), _weights(apart, 1))
    assert not torch.equal(_weights(together, 0), _weights(together, 1))
    assert torch.equal(_tokens(apart, 0), _tokens(together, 6))
    assert not torch.equal(_tokens(together, 0), _tokens(together, 1))


def test_the_data_seed_alone_fixes_the_data_whatever_the_encoding() -> None:
    assert torch.equal(_tokens(made(pe="nope"), 4), _tokens(made(pe="offset"), 4))


def _weights(experiment: Experiment, seed: int) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in experiment.model(seed, CPU).parameters()])


def _tokens(experiment: Experiment, seed: int) -> torch.Tensor:
    return experiment.data(seed, CPU).micro_batches(0)[0].batch.tokens_BT


@pytest.mark.parametrize(
    ("top", "sections", "reason"),
    [
        ({"pe": "nope"}, {"model": {"attention": "bidirectional"}}, "feeds its answer back"),
        ({"test_lengths": "2,200"}, {"coupling": {"ids": 100}}, "--set coupling.ids=202"),
        ({"train_lengths": "1,200", "test_lengths": "2"}, {"coupling": {"ids": 100}}, "--set coupling.ids=202"),
        ({"pe": "learned"}, {"learned": {"axes": 2}}, "--set learned.axes=1"),
        ({"pe": "nope+learned"}, {}, "leave it out: 'learned'"),
    ],
)
def test_what_would_mean_nothing_is_refused_with_its_reason(
    top: dict[str, str], sections: Sections, reason: str
) -> None:
    with pytest.raises(Refusal, match=reason):
        made(sections, **top)


def swept(made: Experiment, lengths: str, axis: str, kinds: str, examples: int, seed: int) -> Experiment:
    asked = TopLevel(test_lengths=lengths, test_sets=kinds, axis=axis, examples=examples, test_seed=seed)
    return experiments.with_sweep(made, asked)


def test_a_table_has_to_hold_the_longest_test_along_the_axis_as_well() -> None:
    short = made({"learned": {"table": 40}}, pe="learned", test_lengths="5")
    with pytest.raises(Refusal, match=r"learned.table=40 .* --set learned.table=\d+"):
        swept(short, "5", "operands=2,10", "random", 10, 0)


def test_a_sweep_along_an_axis_crosses_lengths_kinds_and_values() -> None:
    crossed = swept(made(), "5,4", "operands=2,4", "random,edge", 10, 3)
    sets = crossed.test_sets()
    assert [(s.length, s.kind, s.axis_value) for s in sets] == [
        (length, kind, value) for length in (4, 5) for kind in ("random", "edge") for value in (2, 4)
    ]
    assert {(s.axis, s.examples, s.seed) for s in sets} == {("operands", 10, 3)}
    assert [s.task for s in sets[:2]] == [replace(crossed.task, operands=2), replace(crossed.task, operands=4)]
    assert crossed.config == made().config


def test_what_is_named_twice_is_swept_once() -> None:
    assert len(made(test_sets="edge, edge", test_lengths="3,3-3").test_sets()) == 1
    assert len(swept(made(), "3", "operands=3,3.0", "edge,edge", 10, 0).test_sets()) == 1


@pytest.mark.parametrize("axis", ["operands=1", "operands=11", "operands=2.5", "operands=nan", "operands=inf"])
def test_an_axis_takes_only_what_the_option_takes(axis: str) -> None:
    with pytest.raises(UserError, match=r"addition\.operands should be"):
        swept(made(), "5", axis, "random", 10, 0)


@pytest.mark.parametrize("axis", ["padded=1", "length=3", "operand_lengths=1"])
def test_an_option_that_is_no_axis_cannot_be_swept(axis: str) -> None:
    with pytest.raises(UserError, match="has no axis"):
        swept(made(), "5", axis, "random", 10, 0)


def test_the_looks_beyond_training_go_as_far_as_the_encodings_reach() -> None:
    assert experiments.development_lengths(made(train_lengths="1-20", test_lengths="5")) == (25, 30, 40)
    near = made({"coupling": {"ids": 35}}, train_lengths="1-20", test_lengths="5")
    assert experiments.development_lengths(near) == (25, 30)
    assert experiments.development_lengths(made(train_lengths="1", test_lengths="1")) == (2,)


def test_settings_that_nothing_reads_are_refused_but_presets_may_have_them() -> None:
    layers: Sections = {"": {"task": "addition", "pe": "nope", "train_lengths": "1", "test_lengths": "2"}}
    with_more = {**layers, "offset": {"ids": 99}}
    assert experiments.plan(with_more, layers, REGISTRY).config.expansion == "nope"
    with pytest.raises(UserError, match="'offset' takes no part"):
        experiments.plan(with_more, with_more, REGISTRY)


# Lengths --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounded(Addition):
    """Addition of no more digits than three times its operands."""

    name = "bounded"

    @property
    def smallest_length(self) -> int:
        return 2

    def check_length(self, length: int) -> None:
        super().check_length(length)
        if length > 3 * self.operands:
            raise UserError(f"the longest bounded is {3 * self.operands}: bounded.operands={self.operands} says so")


def bounded(train_lengths: str = "2-4", test_lengths: str = "2-6", **top: str) -> Experiment:
    layers: Sections = {
        "": {"task": "bounded", "pe": "nope", "train_lengths": train_lengths, "test_lengths": test_lengths, **top}
    }
    return experiments.plan(layers, layers, replace(REGISTRY, tasks={**REGISTRY.tasks, "bounded": Bounded}))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"test_lengths": "2,7"},
            "--test-lengths asks for length 7, but the longest bounded is 6: bounded.operands=2 says so",
        ),
        (
            {"train_lengths": "3-8"},
            "--train-lengths asks for length 7, but the longest bounded is 6: bounded.operands=2 says so",
        ),
        ({"test_lengths": "1-3"}, "--test-lengths asks for length 1, but the shortest bounded is 2"),
        ({"train_lengths": "1"}, "--train-lengths asks for length 1, but the shortest bounded is 2"),
    ],
)
def test_lengths_that_a_task_does_not_have_are_refused(asked: dict[str, str], message: str) -> None:
    with pytest.raises(UserError) as refused:
        bounded(**asked)
    assert str(refused.value) == message


def test_lengths_go_as_far_as_the_task_along_an_axis() -> None:
    assert bounded().evaluation.test_lengths == (2, 3, 4, 5, 6)
    assert len(bounded(axis="operands=2,3").test_sets()) == 10
    assert len(swept(bounded(), "6", "operands=2,3", "random", 10, 0).test_sets()) == 2
    assert len(swept(bounded(), "9", "operands=3,4", "random", 10, 0).test_sets()) == 2
    made = bounded()
    with pytest.raises(UserError, match=r"length 7, but the longest bounded is 6: bounded\.operands=2"):
        swept(made, "6,7", "operands=3,2", "random", 10, 0)


def test_the_looks_beyond_training_go_as_far_as_the_task() -> None:
    assert experiments.development_lengths(bounded(train_lengths="2-4")) == (5, 6)

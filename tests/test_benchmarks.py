"""What `make bench` measures, without measuring it."""

from __future__ import annotations

import pytest

from algolen import experiment, registry
from benchmarks import encodings, samplers
from benchmarks.tapes import lengths_within

KNOWN = registry.load()


@pytest.mark.parametrize("written", [*KNOWN.encodings, *encodings.COMPOSED, *encodings.UNSHARED])
def test_every_encoding_is_measured_on_a_tape_of_the_length_that_is_stated(written: str) -> None:
    planned = encodings.plan(written, KNOWN)
    assert planned.pe.written == written
    assert planned.task.tape_length(planned.config.train_lengths[0]) == encodings.TAPE


@pytest.mark.parametrize("name", KNOWN.tasks)
def test_every_task_has_lengths_to_be_measured_at(name: str) -> None:
    for asked in ({}, *samplers.DEMANDING.get(name, ())):
        task = experiment.make_task(name, {name: dict(asked)}, KNOWN)
        lengths = lengths_within(task, samplers.TAPE)
        assert len(lengths) > 1
        assert samplers.TAPE // 2 < task.tape_length(lengths[-1]) <= samplers.TAPE


def test_options_that_take_more_work_are_those_of_tasks_there_are() -> None:
    assert samplers.DEMANDING.keys() <= KNOWN.tasks.keys()

"""The sweep: fixed test sets, whatever the batch; memory that runs out; long tapes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from algolen.evaluation.sweep import Point, activation_bytes, evaluate
from algolen.evaluation.test_sets import TestSet, with_axis
from algolen.model import Transformer
from tests import building
from tests.encodings.toys import TOYS


def model(written: str = "coupling", **fields: object) -> Transformer:
    return building.model(building.expression(written, TOYS, coupling={"ids": 1000}, learned={"table": 2100}), **fields)


def a_set(examples: int = 150, length: int = 3, **fields: object) -> TestSet:
    return TestSet(
        **{"task": building.task(), "kind": "random", "length": length, "examples": examples, "seed": 0, **fields}
    )


def bare(point: Point) -> dict[int, tuple[int, int, int, int]]:
    return {stratum: (c.units, c.exact, c.tokens, c.tokens_correct) for stratum, c in point.counts.items()}


@pytest.mark.parametrize("written", ["coupling", "distance", "noisy"])
def test_counts_and_fingerprint_do_not_depend_on_the_batch_size(written: str) -> None:
    own = model(written)
    by_size = [evaluate(own, a_set(), building.CPU, bytes_allowed) for bytes_allowed in (1, 2**17, 2**30)]
    assert bare(by_size[0]) == bare(by_size[1]) == bare(by_size[2])
    assert len({point.sha256 for point in by_size}) == 1
    assert by_size[0].total.units == 150


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"length": 4},
        {"examples": 149},
        {"kind": "edge"},
        {"task": building.task(reverse_answer=False)},
        {"task": with_axis(building.task(), "operands", 3)},
    ],
    ids=str,
)
def test_a_fingerprint_names_the_a_set(other: dict[str, object]) -> None:
    own = model()
    point = evaluate(own, a_set(), building.CPU)
    assert evaluate(model(seed=1), a_set(), building.CPU).sha256 == point.sha256
    assert evaluate(own, a_set(**other), building.CPU).sha256 != point.sha256


def test_test_sets_never_change_silently() -> None:
    point = evaluate(model(), a_set(), building.CPU)
    assert point.sha256.startswith(GOLDEN)


GOLDEN = "044dc06d915d"


def test_progress_is_told_of_every_example_once() -> None:
    told: list[int] = []
    evaluate(model(), a_set(), building.CPU, 2**18, advance=told.append)
    assert sum(told) == 150 and len(told) > 1


@pytest.mark.parametrize("written", ["learned", "distance"])
def test_a_tape_of_2000_tokens_is_swept(written: str) -> None:
    own = model(written)
    long = a_set(examples=3, length=666)
    assert long.task.tape_length(666) >= 2000
    assert evaluate(own, long, building.CPU).total.units == 3


def test_activations_of_long_tapes_with_plain_attention_are_reckoned_quadratic() -> None:
    assert activation_bytes(model("distance"), 2000) > 100 * activation_bytes(model("distance"), 100)
    assert activation_bytes(model("nope"), 2000) == 20 * activation_bytes(model("nope"), 100)


OUT_OF_MEMORY = """
import resource, torch
torch.set_num_threads(1)
from tests.evaluation.test_sweep import a_set, bare, evaluate, model
from tests import building
own, sizes = model("distance"), []
few = a_set(examples=400, length=60)
expected = evaluate(own, few, building.CPU, 2**24)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 120 * 2**20,) * 2)
point = evaluate(own, few, building.CPU, 2**40, advance=sizes.append)
assert bare(point) == bare(expected), (point, expected)
print(max(sizes), sum(sizes))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits its own address space")
def test_a_batch_is_halved_when_memory_runs_out_and_nothing_is_lost() -> None:
    root = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert found.returncode == 0, found.stderr
    largest, total = map(int, found.stdout.split())
    assert total == 400 and largest < 400


def test_errors_that_are_not_about_memory_are_raised() -> None:
    class Broken(Transformer):
        def logits_and_aux_loss(self, *arguments: object, **named: object) -> tuple[torch.Tensor, None]:
            raise RuntimeError("a shape does not fit")

    own = model()
    own.__class__ = Broken
    with pytest.raises(RuntimeError, match="does not fit"):
        evaluate(own, a_set(), building.CPU)

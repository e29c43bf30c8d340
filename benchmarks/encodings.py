"""Each encoding's training step over that of nope with plain matrix products.

Both make their attention logits in full, so that it is the encoding that is measured and not the fused kernel that some
do without. Encodings are those of the registry, each alone, and a few compositions; batches are made beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from algolen import experiment, registry
from algolen.config import Sections
from algolen.encodings.base import Encoding, Site
from algolen.encodings.expression import Expression, parse
from algolen.errors import Refusal
from algolen.experiment import Experiment
from algolen.registry import Registry
from algolen.training.data import Micro
from algolen.training.step import Stepper
from benchmarks.measuring import Bar, duel
from benchmarks.tapes import lengths_within
from benchmarks.training import CPU

TAPE, BLOCKS, STEPS = 128, 7, 2
MODEL = {"width": 64, "layers": 2, "heads": 4}
TRAIN = {"batch": 32}
MOST = 4.0
COMPOSED = ("abacus+fire",)
# Shown without a bar: ids differ between examples, so that nothing which is made for pairs of places is shared.
UNSHARED = ("coupling+fire",)


class Plain(Encoding):
    """Does nothing, by a hook that the fused kernel has no place for."""

    name = "plain"
    kind = "none"
    paper = "none"

    def refine(self, logits_BHTT: Tensor, site: Site) -> Tensor:
        return logits_BHTT


def bars() -> Iterator[Bar]:
    """A step of every encoding over one of nope with plain matrix products."""
    known = registry.load()
    plain = parse("plain", {"plain": Plain}.__getitem__, {})
    for written in (*known.encodings, *COMPOSED, *UNSHARED):
        yield _bar(plan(written, known), plain)


def plan(written: str, known: Registry) -> Experiment:
    """The encoding on the task whose tape comes nearest to `TAPE`, of those that go with its default options."""
    longest = {name: lengths_within(task(), TAPE)[-1] for name, task in known.tasks.items()}
    refusals = []
    for name in sorted(longest, key=lambda name: TAPE - known.tasks[name]().tape_length(longest[name])):
        length = str(longest[name])
        asked: Sections = {
            "": {"task": name, "pe": written, "train_lengths": length, "test_lengths": length},
            "model": dict(MODEL),
            "train": dict(TRAIN),
        }
        try:
            return experiment.plan(asked, asked, known)
        except Refusal as refusal:
            refusals.append(f"{name}: {refusal}")
    raise AssertionError(f"no task goes with {written} at its default options ({'; '.join(refusals)})")


def _bar(planned: Experiment, plain: Expression) -> Bar:
    data = planned.data(0, CPU)
    handed = [data.micro_batches(step) for step in range((BLOCKS + 1) * STEPS)]
    timed = duel(_training(planned, handed), _training(replace(planned, pe=plain), handed), BLOCKS)
    mine, other = timed.first_seconds / STEPS * 1e3, timed.second_seconds / STEPS * 1e3
    written, expansion = planned.pe.written, planned.pe.expansion
    what = written if written == expansion else f"{written} ({expansion})"
    tape = planned.task.tape_length(planned.config.train_lengths[0])
    note = f"{mine:.0f} ms, nope {other:.0f}; {planned.task.name}, tape {tape}"
    return Bar(f"step, {what}", timed.ratio, "×", most=None if written in UNSHARED else MOST, note=note)


def _training(planned: Experiment, handed: Sequence[Sequence[Micro]]) -> Callable[[int], None]:
    """Trains a model of its own on the steps of a block, draws of positions included."""
    stepper = Stepper(planned.model(0, CPU), planned.config.train, planned.config.train.steps)

    def train(block: int) -> None:
        for step in range(block * STEPS, (block + 1) * STEPS):
            stepper(step, handed[step])

    return train

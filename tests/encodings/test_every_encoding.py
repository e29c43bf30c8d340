"""Properties that every encoding has, and every combination; toys stand for the hooks that no built-in one uses yet."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch.func import functional_call, grad, stack_module_state, vmap

from algolen.batch import Batch
from algolen.encodings.expression import Expression
from algolen.model import Draws, Transformer
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import PADDING
from algolen.training.step import autocast, loss_sum
from tests import building
from tests.encodings.toys import EXPRESSIONS, TOYS

TRAINED_TO = 6


def option_values() -> Iterator[str]:
    """Every value, but for the default, of every yes/no and either/or option of the encodings that are found."""
    for name, cls in building.REGISTRY.encodings.items():
        for field in dataclasses.fields(cls.Options):
            hint = typing.get_type_hints(cls.Options)[field.name]
            values = (True, False) if hint is bool else typing.get_args(hint) if is_literal(hint) else ()
            yield from (f"{name}:{field.name}={value}" for value in values if value != field.default)


def is_literal(hint: object) -> bool:
    return typing.get_origin(hint) is typing.Literal


def read(written: str) -> Expression:
    """The expression, with the option that stands behind a colon."""
    name, _, option = written.partition(":")
    key, _, value = option.partition("=")
    return building.expression(name, TOYS, **({name: {key: value}} if option else {}))


def make(written: str, seed: int = 0, **fields: object) -> Transformer:
    """A model some way off its initial values: a table that starts at zero would hide what it is multiplied by."""
    model, generator = building.model(read(written), seed, **fields), torch.Generator()
    generator.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def forward(model: Transformer, batch: Batch, positions: Random, phase: Phase = Phase.TRAINING) -> torch.Tensor:
    logits_BTV: torch.Tensor = model(batch, model.draw(batch, positions, phase))
    return logits_BTV


@pytest.fixture(params=[*EXPRESSIONS, *(pytest.param(own, marks=pytest.mark.slow) for own in option_values())])
def written(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_every_built_in_encoding_is_among_the_expressions() -> None:
    assert set(building.REGISTRY.encodings) <= {name for written in EXPRESSIONS for name in written.split("+")}


def test_no_position_sees_a_later_token(written: str) -> None:
    model, task = make(written), building.task()
    batch, positions = building.batch(task, [5] * 4)
    draws = model.draw(batch, positions, Phase.TRAINING)
    before = model(batch, draws)
    for cut in (1, 4, 9, 15):
        tokens_BT = batch.tokens_BT.clone()
        tokens_BT[:, cut:] = (tokens_BT[:, cut:] + 5) % 14
        after = model(replace(batch, tokens_BT=tokens_BT), draws)
        assert torch.equal(before[:, :cut], after[:, :cut])
        assert not torch.equal(before[:, cut:], after[:, cut:])


@pytest.mark.parametrize("causal", [True, False])
def test_padding_and_batch_neighbours_change_nothing_beyond_rounding(written: str, causal: bool) -> None:
    if not causal and any(member.cls.causal_only for member in read(written).members):
        pytest.skip("refused with bidirectional attention")
    model, task = make(written, causal=causal), building.task()
    lengths = [1, 6, 3, 2, 6]
    batch, positions = building.batch(task, lengths)
    together = forward(model, batch, positions)
    for row, length in enumerate(lengths):
        alone, own = building.batch(task, [length], first=row)
        tape = alone.tape_length
        torch.testing.assert_close(
            together[row, :tape], forward(model, alone, own)[0], atol=1e-5, rtol=1e-5, msg=f"row {row}"
        )


def test_the_loss_ignores_what_stands_on_padding(written: str) -> None:
    model, task = make(written), building.task()
    batch, positions = building.batch(task, [2, 6])
    draws = model.draw(batch, positions, Phase.TRAINING)
    assert (batch.tokens_BT[~batch.valid_BT] == PADDING).all()
    garbled = replace(batch, tokens_BT=torch.where(batch.valid_BT, batch.tokens_BT, 7))
    torch.testing.assert_close(loss_sum(model, batch, draws), loss_sum(model, garbled, draws))


@pytest.mark.parametrize("phase", list(Phase))
def test_ids_keep_to_what_is_announced_of_them_before_they_are_drawn(written: str, phase: Phase) -> None:
    pe, length = read(written), 9
    members = building.model(pe).encodings
    for task in (building.task(), building.task(reverse_answer=False, padded=False), building.task("reverse")):
        said = pe.stream(task, length)
        batch, positions = building.batch(task, [length, 1, length, 4] * 50)
        ids_BTA = members.map_ids(batch, positions, phase)
        assert ids_BTA.shape == (len(batch), batch.tape_length, said.axes)
        assert ids_BTA.is_floating_point() != said.integers
        assert 0 <= ids_BTA.min() <= ids_BTA.max() <= said.largest
        forward_BTA = ids_BTA.diff(dim=1)[batch.valid_BT[:, 1:]]
        assert (forward_BTA > 0).all() or not said.increasing


@pytest.mark.parametrize("length", [1, 4 * TRAINED_TO])
def test_values_and_gradients_are_finite_at_length_1_and_at_four_times_the_training_length(
    written: str, length: int
) -> None:
    model, task = make(written), building.task()
    batch, positions = building.batch(task, [length] * 3)
    for phase in Phase:
        assert torch.isfinite(forward(model, batch, positions, phase)).all()
    loss_sum(model, batch, model.draw(batch, positions, Phase.TRAINING)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_every_parameter_receives_gradient(written: str) -> None:
    model, task = make(written), building.task()
    batch, positions = building.batch(task, [TRAINED_TO] * 8)
    loss_sum(model, batch, model.draw(batch, positions, Phase.TRAINING)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_stack_of_eight_equals_eight_single_models(written: str) -> None:
    models = [make(written, seed) for seed in range(8)]
    batch, positions = building.batch(building.task(), [4] * 6)
    draws = models[0].draw(batch, positions, Phase.TRAINING)
    parameters, _ = stack_module_state(models)  # type: ignore[arg-type]
    base = models[0]

    def loss(own: dict[str, torch.Tensor]) -> torch.Tensor:
        return functional_call(_Loss(base), {f"model.{name}": value for name, value in own.items()}, (batch, draws))

    stacked = vmap(grad(loss))(parameters)
    for place, model in enumerate(models):
        single = grad(loss)({name: value.detach() for name, value in model.named_parameters()})
        for name, value in single.items():
            torch.testing.assert_close(stacked[name][place], value, atol=2e-5, rtol=1e-4, msg=name)


class _Loss(torch.nn.Module):
    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, draws: Draws) -> torch.Tensor:
        return loss_sum(self.model, batch, draws)


def test_a_batch_can_be_drawn_in_parts(written: str) -> None:
    model, task = make(written), building.task()
    lengths = [3] * 8
    whole, positions = building.batch(task, lengths)
    parts = [building.batch(task, lengths[cut : cut + 4], first=cut) for cut in (0, 4)]
    together = model.draw(whole, positions, Phase.TRAINING).encodings
    apart = [model.draw(*part, Phase.TRAINING).encodings for part in parts]
    for member, drawn in enumerate(together):
        assert torch.equal(drawn.ids_BTA, torch.cat([own[member].ids_BTA for own in apart]))
        if isinstance(drawn.noise, torch.Tensor):
            assert torch.equal(drawn.noise, torch.cat([own[member].noise for own in apart]))


def test_training_in_bf16_stays_near_fp32(written: str) -> None:
    model, task = make(written), building.task()
    batch, positions = building.batch(task, [TRAINED_TO] * 8)
    draws = model.draw(batch, positions, Phase.TRAINING)
    with autocast("bf16", building.CPU):
        low = loss_sum(model, batch, draws)
    assert low.dtype == torch.float32
    torch.testing.assert_close(low, loss_sum(model, batch, draws), rtol=0.02, atol=0)


@pytest.mark.parametrize("phase", [Phase.TEST, Phase.EVEN])
def test_nothing_is_drawn_at_test_unless_the_encoding_says_so(written: str, phase: Phase) -> None:
    pe = read(written)
    model, task = building.model(pe), building.task()
    batch, positions = building.batch(task, [4] * 3)
    other = Random.of("other", examples_B=torch.arange(3), groups_B=torch.arange(3))
    first, second = (model.draw(batch, random, phase).encodings for random in (positions, other))
    same = [torch.equal(a.ids_BTA, b.ids_BTA) and _equal(a.noise, b.noise) for a, b in zip(first, second, strict=True)]
    assert all(same) != (pe.draws_at_test and phase is Phase.TEST)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    return one == other

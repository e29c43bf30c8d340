"""A training step against a hand-written one, and its options."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
import torch.nn.functional as F

from algolen.config import Sections
from algolen.errors import UserError
from algolen.model import Passes
from algolen.phase import Phase
from algolen.training.step import Stepper, learning_rate, loss_sum, progressive_passes
from tests import building
from tests.encodings.toys import TOYS


def stepper(written: str = "coupling", steps: int = 10, **fields: object) -> tuple[Stepper, object]:
    made = building.experiment({"train": {"steps": steps, **fields}}, pe=written)
    return Stepper(made.model(0, building.CPU), made.config.train, steps), made.data(0, building.CPU)


def train(steps: int = 6, **fields: object) -> dict[str, torch.Tensor]:
    made = building.experiment({"train": {"steps": steps, **fields}})
    own = Stepper(made.model(0, building.CPU), made.config.train, steps)
    data = made.data(0, building.CPU)
    for step in range(steps):
        own(step, data.micro_batches(step))
    return {name: value.detach() for name, value in own.model.named_parameters()}


def naive_training(steps: int, decay: float, clip: float) -> dict[str, torch.Tensor]:
    """Adam with decoupled decay, written out, over losses averaged one position at a time."""
    made = building.experiment({"train": {"steps": steps}})
    config, model, data = made.config.train, made.model(0, building.CPU), made.data(0, building.CPU)
    moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in model.named_parameters()}
    for step in range(steps):
        (micro,) = data.micro_batches(step)
        logits_BTV = model(micro.batch, model.draw(micro.batch, micro.positions, Phase.TRAINING))
        losses = [
            -F.log_softmax(logits_BTV[row, place], dim=-1)[micro.batch.targets_BT[row, place]]
            for row, place in micro.batch.trained_BT.nonzero().tolist()
        ]
        model.zero_grad()
        (sum(losses) / len(losses)).backward()  # type: ignore[union-attr]
        gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients.values()))
        for name, parameter in model.named_parameters():
            gradient = gradients[name] * min(1.0, clip / norm)
            first, second = moments[name]
            first.mul_(0.9).add_(gradient, alpha=0.1)
            second.mul_(0.999).add_(gradient.square(), alpha=0.001)
            rate = learning_rate(config, step, steps)
            with torch.no_grad():
                if parameter.ndim > 1:
                    parameter.mul_(1 - rate * decay)
                update = first / (1 - 0.9 ** (step + 1)) / ((second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)
                parameter.sub_(rate * update)
    return {name: value.detach() for name, value in model.named_parameters()}


def test_training_equals_a_hand_written_adamw_with_decay_and_clipping() -> None:
    ours, theirs = train(weight_decay=0.1, clip=0.5), naive_training(6, decay=0.1, clip=0.5)
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], atol=2e-5, rtol=1e-3, msg=name)


def test_accumulation_changes_nothing_beyond_rounding() -> None:
    whole, cut = train(lengths_in_batch="mixed"), train(lengths_in_batch="mixed", accumulate=4)
    for name, value in whole.items():
        torch.testing.assert_close(value, cut[name], atol=5e-5, rtol=1e-3, msg=name)
    assert any(not torch.equal(value, cut[name]) for name, value in whole.items())


def test_clipping_at_zero_is_off_and_a_small_norm_changes_training() -> None:
    off, wide, tight = (train(clip=clip) for clip in (0.0, 1e6, 1e-3))
    assert all(torch.allclose(value, wide[name]) for name, value in off.items())
    assert any(not torch.allclose(value, tight[name]) for name, value in off.items())


def test_the_learning_rate_warms_up_then_follows_a_cosine_or_stays() -> None:
    cosine = building.train_config(learning_rate=1.0, warmup=10, final_fraction=0.1)
    constant = building.train_config(learning_rate=1.0, warmup=10, schedule="constant")
    assert learning_rate(cosine, 0, 110) == pytest.approx(0.1)
    assert learning_rate(cosine, 9, 110) == pytest.approx(1.0)
    assert learning_rate(cosine, 60, 110) == pytest.approx(0.55)
    assert learning_rate(cosine, 110, 110) == pytest.approx(0.1)
    assert {learning_rate(constant, step, 110) for step in range(10, 110)} == {1.0}
    assert learning_rate(building.train_config(learning_rate=1.0, warmup=0), 0, 110) == pytest.approx(1.0)


def test_a_linear_schedule_and_a_cooldown_fall_in_a_line_to_the_final_fraction() -> None:
    linear = building.train_config(learning_rate=2.0, warmup=10, schedule="linear", final_fraction=0.0)
    assert [learning_rate(linear, step, 110) for step in (10, 60, 110)] == pytest.approx([2.0, 1.0, 0.0])
    cooled = building.train_config(learning_rate=2.0, warmup=10, schedule="constant", cooldown=20, final_fraction=0.5)
    assert {learning_rate(cooled, step, 110) for step in range(10, 91)} == {2.0}
    assert [learning_rate(cooled, step, 110) for step in (100, 110)] == pytest.approx([1.5, 1.0])


def test_the_average_is_the_decayed_sum_of_all_weights_and_only_the_test_sees_it() -> None:
    made = building.experiment({"train": {"steps": 6, "average": 0.6}})
    own, data = Stepper(made.model(0, building.CPU), made.config.train, 6), made.data(0, building.CPU)
    expected = [parameter.detach().clone() for parameter in own.parameters]
    for step in range(6):
        own(step, data.micro_batches(step))
        decay = min(0.6, (1 + step) / (10 + step))
        expected = [decay * a + (1 - decay) * p.detach() for a, p in zip(expected, own.parameters, strict=True)]
    trained = train()
    for (name, parameter), average in zip(own.model.named_parameters(), expected, strict=True):
        assert torch.equal(parameter, trained[name]), "averaging does not change training"
        with own.tested():
            torch.testing.assert_close(parameter, average)
            assert not torch.equal(parameter, trained[name])
        assert torch.equal(parameter, trained[name])


# The progressive loss -------------------------------------------------------------------------------------------------


def looped(**fields: object) -> dict[str, torch.Tensor]:
    made = building.experiment({"model": {"loops": 4, "injection": "loop"}, "train": {"steps": 3, **fields}})
    own, data = Stepper(made.model(0, building.CPU), made.config.train, 3), made.data(0, building.CPU)
    for step in range(3):
        own(step, data.micro_batches(step))
    return {name: value.detach() for name, value in own.model.named_parameters()}


@pytest.mark.parametrize("most", [None, 1, 2, 100])
def test_progressive_passes_are_uniform_over_what_is_allowed_and_never_more_than_the_loops(most: int | None) -> None:
    loops, counts = 4, Counter(progressive_passes(step, 4, most) for step in range(8000))
    for untracked in range(loops):
        left = loops - untracked if most is None else min(loops - untracked, most)
        for tracked in range(1, left + 1):
            share = counts.pop(Passes(untracked, tracked)) / 8000
            assert share == pytest.approx(1 / loops / left, rel=0.15)
    assert not counts


def test_the_progressive_loss_mixes_the_loss_of_some_passes_with_that_of_all() -> None:
    made = building.experiment({"model": {"loops": 4}, "train": {"progressive": 0.25}})
    own, (micro,) = (
        Stepper(made.model(0, building.CPU), made.config.train, 3),
        made.data(0, building.CPU).micro_batches(0),
    )
    draws = own.model.draw(micro.batch, micro.positions, Phase.TRAINING)
    step = next(step for step in range(100) if sum(progressive_passes(step, 4, None)) < 4)
    some = loss_sum(own.model, micro.batch, draws, progressive_passes(step, 4, None))
    whole = loss_sum(own.model, micro.batch, draws)
    expected = (0.25 * some + 0.75 * whole) / micro.batch.trained_BT.sum()
    torch.testing.assert_close(own(step, [micro]), expected.detach())
    assert not torch.allclose(some, whole)


@pytest.mark.parametrize("fields", [{"progressive": 1.0}, {"progressive": 1.0, "progressive_most": 1}], ids=str)
def test_every_option_of_the_progressive_loss_has_an_effect(fields: dict[str, object]) -> None:
    plain, progressive = looped(**{**fields, "progressive": 0.5}), looped(**fields)
    assert any(not torch.allclose(value, progressive[name], atol=1e-6) for name, value in plain.items())


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"train": {"progressive": 1.0}}, "set model.loops"),
        ({"train": {"progressive_most": 2}}, "set train.progressive"),
        ({"train": {"cooldown": 2}}, "set train.schedule=constant"),
    ],
    ids=str,
)
def test_options_that_would_do_nothing_are_refused(sections: Sections, says: str) -> None:
    with pytest.raises(UserError, match=says):
        building.experiment(sections)


def test_only_trained_positions_enter_the_loss() -> None:
    model = building.model(building.expression("nope"))
    batch, positions = building.batch(building.task(), [2, 4])
    logits_BTV = model(batch, model.draw(batch, positions, Phase.TRAINING))
    expected = F.cross_entropy(logits_BTV[batch.trained_BT], batch.targets_BT[batch.trained_BT], reduction="sum")
    torch.testing.assert_close(loss_sum(model, batch, model.draw(batch, positions, Phase.TRAINING)), expected)


def test_an_encodings_extra_loss_is_added_once_for_the_mean() -> None:
    model = building.model(building.expression("noisy", TOYS))
    batch, positions = building.batch(building.task(), [3] * 4)
    draws = model.draw(batch, positions, Phase.TRAINING)
    extra = model.encodings.members[0].table_ND.square().mean()  # type: ignore[union-attr, operator]
    without = F.cross_entropy(model(batch, draws)[batch.trained_BT], batch.targets_BT[batch.trained_BT])
    mean = loss_sum(model, batch, draws) / batch.trained_BT.sum()
    torch.testing.assert_close(mean, without + extra)


def test_bf16_trains_and_keeps_fp32_parameters() -> None:
    low, full = train(precision="bf16", steps=3), train(steps=3)
    assert all(value.dtype == torch.float32 for value in low.values())
    assert any(not torch.equal(value, full[name]) for name, value in low.items())
    assert all(torch.allclose(value, full[name], atol=0.02) for name, value in low.items())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_step_trains_the_same_model_at_changing_lengths() -> None:
    plain, compiled = train(), train(compile=True)
    assert set(plain) == set(compiled)
    for name, value in plain.items():
        torch.testing.assert_close(value, compiled[name], atol=1e-4, rtol=1e-2, msg=name)


@pytest.mark.parametrize("option", [{"beta1": 0.5}, {"beta2": 0.9}, {"epsilon": 0.1}, {"weight_decay": 10.0}], ids=str)
def test_every_option_of_the_optimiser_has_an_effect(option: dict[str, float]) -> None:
    default, changed = train(), train(**option)
    assert any(not torch.allclose(value, changed[name], atol=1e-6) for name, value in default.items())


def test_gains_do_not_decay() -> None:
    (strong,) = (train(steps=1, weight_decay=100.0),)
    (none,) = (train(steps=1),)
    assert torch.equal(strong["final.gain_D"], none["final.gain_D"])
    assert not torch.equal(strong["tokens_VD"], none["tokens_VD"])


def test_the_loss_of_an_accumulated_step_is_that_of_the_whole_batch() -> None:
    losses = []
    for accumulate in (1, 4):
        made = building.experiment({"train": {"accumulate": accumulate, "lengths_in_batch": "mixed"}})
        own = Stepper(made.model(0, building.CPU), made.config.train, 10)
        losses.append(float(own(0, made.data(0, building.CPU).micro_batches(0))))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)

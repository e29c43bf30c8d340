"""The transformer against a slow re-derivation in fp64, and its options one by one."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch

from algolen.encodings.base import Site
from algolen.errors import UserError
from algolen.model import Passes, Transformer
from algolen.phase import Phase
from algolen.random import Random
from tests import building
from tests.encodings.toys import TOYS

Array = npt.NDArray[np.float64]


def naive_norm(kind: str, x: Array, gain: Array) -> Array:
    if kind == "rms":
        return x / np.sqrt((x**2).mean() + 1e-6) * gain
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * gain


def naive_activation(kind: str, x: Array) -> Array:
    if kind == "relu":
        return np.maximum(x, 0)
    return np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x])


def naive_attention(weights: dict[str, Array], x_TD: Array, model: Transformer, bias: float) -> Array:
    """Attention of one example, one head and one query at a time; the bias falls with distance."""
    heads, causal = model.config.heads, model.causal
    size, width = x_TD.shape[1] // heads, x_TD.shape[0]
    q_TD, k_TD, v_TD = (x_TD @ weights[name].T for name in ("query_DD", "key_DD", "value_DD"))
    out = np.zeros_like(x_TD)
    for head, i in itertools.product(range(heads), range(width)):
        own = slice(head * size, (head + 1) * size)
        keys = range(i + 1) if causal else range(width)
        scores = [
            q_TD[i, own] @ k_TD[j, own] / math.sqrt(size) * model.config.logit_multiplier - bias * (i - j) for j in keys
        ]
        shares = [math.exp(score - max(scores)) for score in scores]
        out[i, own] = sum(share / sum(shares) * v_TD[j, own] for share, j in zip(shares, keys, strict=True))
    return out @ weights["out_DD"].T


def naive_transformer(model: Transformer, tokens: list[int], bias: float) -> Array:
    """Logits of one example."""
    config = model.config
    weights = {name: value.detach().double().numpy() for name, value in model.named_parameters()}
    part = lambda prefix: {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}  # noqa: E731
    h_TD = weights["tokens_VD"][tokens]
    if config.embedding_scale == "sqrt_width":
        h_TD = h_TD * math.sqrt(config.width)
    norm = lambda x_TD, gain: np.stack([naive_norm(config.norm, x, gain) for x in x_TD])  # noqa: E731
    e_TD = h_TD
    for loop, layer in itertools.product(range(config.loops), range(config.layers)):
        if config.injection == "layer" or (config.injection == "loop" and layer == 0):
            h_TD = h_TD if loop == layer == 0 else h_TD + e_TD
        block = part(f"blocks.{layer}.")
        for name in ("attention", "feed_forward"):
            before, after = block.get(f"before.{name}.gain_D"), block.get(f"after.{name}.gain_D")
            x_TD = h_TD if before is None else norm(h_TD, before)
            own = part(f"blocks.{layer}.{name}.")
            if name == "attention":
                update_TD = naive_attention(own, x_TD, model, bias)
            else:
                hidden_TF = x_TD @ own["up_FD"].T
                kind = config.activation
                if kind == "geglu":
                    gate_TF = x_TD @ own["gate_FD"].T
                    hidden_TF = hidden_TF * np.stack([naive_activation("gelu", gate) for gate in gate_TF])
                else:
                    hidden_TF = np.stack([naive_activation(kind, hidden) for hidden in hidden_TF])
                update_TD = hidden_TF @ own["down_DF"].T
            if config.norm_position == "before":
                h_TD = h_TD + update_TD
            elif config.norm_position == "after":
                h_TD = norm(h_TD + update_TD, after)
            else:
                h_TD = h_TD + norm(update_TD, after)
    if config.norm_position != "after":
        h_TD = norm(h_TD, weights["final.gain_D"])
    logits: Array = h_TD @ (weights["tokens_VD"] / math.sqrt(config.width) if config.tied else weights["unembed_VD"]).T
    return logits


CONFIGS = [
    {"norm": norm, "norm_position": position, "activation": activation}
    for norm, position, activation in itertools.product(
        ("rms", "layer"), ("before", "after", "both"), ("gelu", "relu", "geglu")
    )
] + [
    {"tied": True, "embedding_std": 1.0},
    {"logit_multiplier": 2.5, "init_std": 0.3},
    {"embedding_scale": "sqrt_width", "ff_ratio": 1.5},
    {"layers": 1, "heads": 4},
    {"loops": 3},
    {"loops": 3, "injection": "loop", "norm_position": "after"},
    {"loops": 2, "injection": "layer"},
    {"layers": 3, "injection": "layer"},
]


@pytest.mark.parametrize("written", ["nope", "distance"])
@pytest.mark.parametrize("fields", CONFIGS, ids=str)
def test_logits_equal_a_naive_double_loop_in_fp64(fields: dict[str, object], written: str) -> None:
    model = building.model(building.expression(written, TOYS), seed=3, **fields)
    batch, positions = building.batch(building.task(), [3, 3])
    logits_BTV = model(batch, model.draw(batch, positions, Phase.TEST))
    for row in range(2):
        expected = naive_transformer(model, batch.tokens_BT[row].tolist(), bias=0.5 if written == "distance" else 0.0)
        torch.testing.assert_close(logits_BTV[row].double(), torch.from_numpy(expected), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("written", ["learned", "distance"])
def test_a_bidirectional_model_equals_the_naive_one_and_padding_is_not_seen(written: str) -> None:
    model = building.model(building.expression(written, TOYS), seed=1, causal=False)
    batch, positions = building.batch(building.task(), [2, 5])
    logits_BTV = model(batch, model.draw(batch, positions, Phase.TEST))
    alone, own = building.batch(building.task(), [2])
    torch.testing.assert_close(
        logits_BTV[0, : alone.tape_length], model(alone, model.draw(alone, own, Phase.TEST))[0], atol=1e-5, rtol=1e-5
    )
    if written == "distance":
        expected = naive_transformer(model, batch.tokens_BT[1].tolist(), bias=0.5)
        torch.testing.assert_close(logits_BTV[1].double(), torch.from_numpy(expected), atol=2e-5, rtol=1e-4)


def test_the_fused_kernel_and_plain_matrix_products_agree() -> None:
    fused = building.model(building.expression("nope"))
    plain = building.model(building.expression("distance", TOYS, distance={"slope": 0.0}))
    assert plain.encodings.touches_logits and not fused.encodings.touches_logits
    plain.load_state_dict(fused.state_dict())
    batch, positions = building.batch(building.task(), [1, 4, 6])
    ours, theirs = (m(batch, m.draw(batch, positions, Phase.TEST)) for m in (fused, plain))
    torch.testing.assert_close(ours[batch.valid_BT], theirs[batch.valid_BT], atol=1e-5, rtol=1e-5)


def test_bidirectional_models_without_encoding_are_equivariant_to_permutation() -> None:
    model = building.model(building.expression("nope"), causal=False)
    batch, positions = building.batch(building.task(), [3])
    order_T = torch.randperm(batch.tape_length, generator=torch.Generator().manual_seed(0))
    moved = replace(batch, tokens_BT=batch.tokens_BT[:, order_T])
    draws = model.draw(batch, positions, Phase.TEST)
    torch.testing.assert_close(model(batch, draws)[:, order_T], model(moved, draws), atol=1e-5, rtol=1e-5)


def test_initial_values_depend_on_the_seed_and_the_parameters_own_name_only() -> None:
    shallow, deep = (building.model(building.expression(pe), layers=n) for pe, n in (("nope", 1), ("learned", 3)))
    other = building.model(building.expression("nope"), seed=1, layers=1)
    for name, value in shallow.named_parameters():
        assert torch.equal(value, dict(deep.named_parameters())[name])
        if value.ndim > 1:
            assert not torch.equal(value, dict(other.named_parameters())[name])


def test_initial_values_never_change_silently() -> None:
    model = building.model(building.expression("learned"))
    golden = torch.tensor([-0.0325000, -0.0425723, 0.0183487, -0.0015172])
    torch.testing.assert_close(model.tokens_VD[1, :4].detach(), golden, atol=5e-6, rtol=0)


def test_dropout_keeps_the_mean_drops_its_share_and_is_off_at_test() -> None:
    model = building.model(building.expression("nope"), dropout=0.25, width=64)
    batch, positions = building.batch(building.task(), [6] * 32)
    masks = model.draw(batch, positions, Phase.TRAINING).dropout
    assert len(masks) == 1 + 2 * model.config.layers * model.config.loops
    for mask in masks:
        assert mask.unique().tolist() == [0.0, pytest.approx(4 / 3)]
        assert (mask == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert not torch.equal(masks[0], masks[1])
    assert model.draw(batch, positions, Phase.TEST).dropout == ()
    undropped = building.model(building.expression("nope"), width=64)
    draws = model.draw(batch, positions, Phase.TEST)
    assert torch.equal(model(batch, draws), undropped(batch, draws))


def test_dropout_is_the_same_however_the_batch_is_cut() -> None:
    model = building.model(building.expression("nope"), dropout=0.5)
    whole, random = building.batch(building.task(), [3] * 8)
    half, own = building.batch(building.task(), [3] * 4, first=4)
    together, apart = (model.draw(b, r, Phase.TRAINING).dropout for b, r in ((whole, random), (half, own)))
    assert all(torch.equal(a[4:], b) for a, b in zip(together, apart, strict=True))


@pytest.mark.parametrize(("layers", "loops"), [(1, 1), (3, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("written", ["nope", "distance", "state"])
def test_positions_before_the_first_prediction_need_not_be_computed(written: str, layers: int, loops: int) -> None:
    model = building.model(building.expression(written, TOYS), layers=layers, loops=loops, dropout=0.3)
    batch, positions = building.batch(building.task(), [2, 5])
    draws = model.draw(batch, positions, Phase.TRAINING)
    whole_BTV, (rest_BTV, _) = model(batch, draws), model.logits_and_aux_loss(batch, draws, first=4)
    torch.testing.assert_close(whole_BTV[:, 4:], rest_BTV, atol=1e-5, rtol=1e-5)


def test_no_global_random_state_is_touched() -> None:
    before = torch.random.get_rng_state()
    model = building.model(building.expression("coupling"), dropout=0.5)
    batch, positions = building.batch(building.task(), [3] * 4)
    model(batch, model.draw(batch, positions, Phase.TRAINING)).sum().backward()
    assert torch.equal(before, torch.random.get_rng_state())
    assert isinstance(positions, Random)


@pytest.mark.parametrize("loops", [1, 3])
def test_every_dropout_mask_has_an_effect(loops: int) -> None:
    model = building.model(building.expression("nope"), dropout=0.5, loops=loops)
    batch, positions = building.batch(building.task(), [3] * 2)
    draws = model.draw(batch, positions, Phase.TRAINING)
    whole = model(batch, draws)
    for place in range(len(draws.dropout)):
        masks = list(draws.dropout)
        masks[place] = torch.ones_like(masks[place])
        assert not torch.equal(model(batch, draws._replace(dropout=tuple(masks))), whole)


def test_an_encoding_is_told_the_loop_the_layer_and_the_scale_it_is_called_in() -> None:
    seen: list[tuple[int, int, float]] = []

    class Asking(TOYS["distance"]):  # type: ignore[misc]
        name = "asking"

        def bias(self, site: Site) -> torch.Tensor:
            seen.append((site.loop, site.layer, site.scale))
            bias: torch.Tensor = super().bias(site)
            return bias

    model = building.model(building.expression("asking", {"asking": Asking}), layers=3, loops=2, logit_multiplier=3.0)
    batch, positions = building.batch(building.task(), [2])
    model(batch, model.draw(batch, positions, Phase.TEST))
    assert seen == [(loop, layer, 3.0 / math.sqrt(8)) for loop in range(2) for layer in range(3)]


@pytest.mark.parametrize("loops", [1, 2])
def test_a_layers_end_is_told_its_output_and_attention_and_the_last_one_has_none(loops: int) -> None:
    seen: list[tuple[int, int, torch.Size, float]] = []

    class Ending(TOYS["state"]):  # type: ignore[misc]
        name = "ending"

        def layer_end(self, site: Site, attention_BHTT: torch.Tensor) -> torch.Tensor:
            assert site.h_BTD is not None
            seen.append((site.loop, site.layer, site.h_BTD.shape, float(attention_BHTT.detach().sum(-1).mean())))
            ctx: torch.Tensor = super().layer_end(site, attention_BHTT)
            return ctx

    model = building.model(building.expression("ending", {"ending": Ending}), layers=3, loops=loops)
    batch, positions = building.batch(building.task(), [2] * 4)
    model(batch, model.draw(batch, positions, Phase.TEST))
    everywhere = list(itertools.product(range(loops), range(3)))
    assert seen == [(*where, torch.Size([4, batch.tape_length, 16]), pytest.approx(1.0)) for where in everywhere[:-1]]


# Looped layers --------------------------------------------------------------------------------------------------------


def test_a_looped_model_equals_a_deep_one_whose_layers_are_alike() -> None:
    looped = building.model(building.expression("distance", TOYS), layers=2, loops=3)
    deep = building.model(building.expression("distance", TOYS), layers=6)
    weights = looped.state_dict()
    for name in deep.state_dict():
        if name.startswith("blocks."):
            _, layer, rest = name.split(".", 2)
            weights[name] = looped.state_dict()[f"blocks.{int(layer) % 2}.{rest}"]
    deep.load_state_dict(weights)
    batch, positions = building.batch(building.task(), [2, 5])
    ours, theirs = (model(batch, model.draw(batch, positions, Phase.TEST)) for model in (looped, deep))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("phase", [Phase.TRAINING, Phase.TEST])
def test_noise_in_the_state_is_normal_and_joins_the_embeddings_once(phase: Phase) -> None:
    noisy = building.model(building.expression("nope"), width=64, state_std=0.5, loops=2, injection="loop")
    batch, positions = building.batch(building.task(), [6] * 32)
    draws = noisy.draw(batch, positions, phase)
    assert draws.state_BTD is not None
    assert draws.state_BTD.shape == (32, batch.tape_length, 64)
    assert draws.state_BTD.mean().item() == pytest.approx(0, abs=0.01)
    assert draws.state_BTD.std().item() == pytest.approx(0.5, abs=0.01)
    quiet = building.model(building.expression("nope"), width=64, loops=2, injection="loop")
    without = draws._replace(state_BTD=None)
    assert torch.equal(noisy(batch, without), quiet(batch, without))
    assert not torch.equal(noisy(batch, draws), noisy(batch, without))


def test_the_noise_of_a_token_does_not_depend_on_what_comes_after_it_or_beside_it() -> None:
    model = building.model(building.expression("nope"), state_std=0.5)
    long, positions = building.batch(building.task(), [5, 2])
    short, own = building.batch(building.task(), [2], first=1)
    together, alone = model.draw(long, positions, Phase.TEST).state_BTD, model.draw(short, own, Phase.TEST).state_BTD
    assert together is not None and alone is not None
    assert torch.equal(together[1, : short.tape_length], alone[0])


def test_passes_without_gradient_compute_the_same_and_hold_the_embeddings_of_later_ones_responsible_only() -> None:
    model = building.model(building.expression("nope"), layers=1, loops=3, injection="loop")
    batch, positions = building.batch(building.task(), [3])
    draws = model.draw(batch, positions, Phase.TRAINING)
    tracked, untracked = (model.logits_and_aux_loss(batch, draws, passes=p)[0] for p in (Passes(0, 3), Passes(2, 1)))
    assert torch.equal(tracked, untracked)
    assert torch.equal(tracked, model(batch, draws))
    gradients = [torch.autograd.grad(logits.sum(), model.blocks[0].attention.value_DD)[0] for logits in
                 (tracked, untracked)]  # fmt: skip
    assert not torch.allclose(*gradients)
    shallow = model.logits_and_aux_loss(batch, draws, passes=Passes(0, 1))[0]
    assert not torch.allclose(shallow, tracked)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"injection": "loop"}, "set model.loops"),
        ({"injection": "layer", "layers": 1}, "one block and one pass"),
    ],
    ids=str,
)
def test_injection_where_there_is_nothing_to_inject_into_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        building.model(building.expression("nope"), **fields)

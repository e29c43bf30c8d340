"""Greedy decoding as one would write it by hand, with a key–value cache and without: what a sweep is measured against.

For the architecture of `rival_loop`, on the weights of one of our models. Prompts have one length and so do answers, as
in padded addition; position ids are handed in finished.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from algolen.model import Transformer
from benchmarks.rival_loop import HEADS, WIDTH, Model

SCALE = 2.0 / math.sqrt(WIDTH // HEADS)


def with_weights_of(ours: Transformer, positions: int) -> Model:
    """The rival's model with our weights."""
    mine: dict[str, Tensor] = dict(ours.named_parameters())
    part = {name.removeprefix("blocks.0."): tensor for name, tensor in mine.items()}
    attention = [part[f"attention.{name}_DD"] for name in ("query", "key", "value")]
    weights = {
        "tokens.weight": mine["tokens_VD"],
        "block.qkv.weight": torch.cat(attention),
        "block.out.weight": part["attention.out_DD"],
        "block.up.weight": torch.cat([part["feed_forward.up_FD"], part["feed_forward.gate_FD"]]),
        "block.down.weight": part["feed_forward.down_DF"],
        "block.norms.0.weight": part["before.attention.gain_D"],
        "block.norms.1.weight": part["after.attention.gain_D"],
        "block.norms.2.weight": part["before.feed_forward.gain_D"],
        "block.norms.3.weight": part["after.feed_forward.gain_D"],
        "norm.weight": mine["final.gain_D"],
        "unembed.weight": mine["unembed_VD"],
    }
    if positions:
        weights["positions.weight"] = next(table for name, table in mine.items() if name.endswith("tables.0"))
    model = Model(len(mine["tokens_VD"]), positions)
    model.load_state_dict(weights)
    return model


@torch.inference_mode()
def with_cache(model: Model, prompts: Tensor, ids: Tensor | None, answer: int) -> Tensor:
    """The `answer` tokens after each prompt; keys and values are kept in buffers of full size."""
    batch, prompt = prompts.shape
    cache = torch.empty(2, batch, HEADS, prompt + answer - 1, WIDTH // HEADS)
    answers, tokens, start = [], prompts, 0
    while True:
        stop = start + tokens.shape[1]
        h = model.tokens(tokens)
        if model.positions is not None and ids is not None:
            h = h + model.positions(ids[:, start:stop])
        logits = _logits(model, h, cache, start)
        tokens = logits.argmax(dim=-1, keepdim=True)
        answers.append(tokens)
        start = stop
        if len(answers) == answer:
            return torch.cat(answers, dim=1)


def _logits(model: Model, h: Tensor, cache: Tensor, start: int) -> Tensor:
    """Logits after the last of the tokens that begin at `start`; their keys and values go into the cache."""
    block, (batch, fresh, _) = model.block, h.shape
    stop = start + fresh
    qkv = block.qkv(block.norms[0](h)).view(batch, fresh, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    cache[:, :, :, start:stop] = qkv[1:]
    keys, values = cache[:, :, :, :stop]
    mixed = F.scaled_dot_product_attention(qkv[0], keys, values, is_causal=fresh > 1, scale=SCALE)
    # Nothing reads what the only layer says at earlier places of the prompt.
    h, mixed = h[:, -1], mixed[:, :, -1].flatten(1)
    h = h + block.norms[1](block.out(mixed))
    up, gate = block.up(block.norms[2](h)).chunk(2, dim=-1)
    h = h + block.norms[3](block.down(up * F.gelu(gate)))
    logits: Tensor = model.unembed(model.norm(h))
    return logits


@torch.inference_mode()
def without_cache(model: Model, prompts: Tensor, ids: Tensor | None, answer: int) -> Tensor:
    """The same, reading the whole tape again for every token."""
    tokens = prompts
    for _ in range(answer):
        logits = model(tokens, None if ids is None else ids[:, : tokens.shape[1]])
        tokens = torch.cat([tokens, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return tokens[:, prompts.shape[1] :]

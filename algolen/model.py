"""The transformer, readable top to bottom.

* causal or bidirectional, by the task's layout
* norm before, after or around each sublayer; RMSNorm or LayerNorm, no biases anywhere
* one pass through the blocks, or several with the same parameters and the embeddings injected again (looped)
* every position encoding through the same few hooks, in one order (see `attend`)
* the fused attention kernel unless a hook touches the logits
* no randomness inside: ids, noise and dropout masks come in as `Draws`, so that a forward pass is a pure function of
  (parameters, batch, draws) and models can be stacked

Tensor names end in their dimensions: B batch, T tape, D width, H heads, K head width, F feed-forward, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from algolen.batch import Batch
from algolen.config import ModelConfig
from algolen.encodings.base import Drawn, Shape, Site
from algolen.encodings.composition import Context, Encodings
from algolen.encodings.expression import Expression
from algolen.initialisation import Initialiser
from algolen.phase import Phase
from algolen.random import Random


class Draws(NamedTuple):
    """Everything random of a forward pass."""

    encodings: tuple[Drawn, ...]
    dropout: tuple[Tensor, ...] = ()
    state_BTD: Tensor | None = None


class Passes(NamedTuple):
    """How many passes through the blocks a forward pass makes: first those without gradient, then those with it."""

    untracked: int
    tracked: int


class Norm(nn.Module):
    """RMSNorm (Zhang & Sennrich 2019, arXiv 1910.07467) or LayerNorm without bias, with a learned gain."""

    def __init__(self, kind: str, width: int, init: Initialiser) -> None:
        super().__init__()
        self.kind = kind
        self.gain_D = init.constant(1.0, width)

    def forward(self, h_BTD: Tensor) -> Tensor:
        if self.kind == "rms":
            # torch computes mixed types, as under autocast, in the same way, but warns.
            wide_BTD = h_BTD.to(self.gain_D.dtype)
            return F.rms_norm(wide_BTD, self.gain_D.shape, self.gain_D, eps=1e-6).to(h_BTD.dtype)
        return F.layer_norm(h_BTD, self.gain_D.shape, self.gain_D, eps=1e-5)


class Attention(nn.Module):
    """Multi-head attention with the encodings' hooks."""

    def __init__(self, config: ModelConfig, attention_heads: int, init: Initialiser) -> None:
        super().__init__()
        self.heads, self.head_width = config.heads, config.width // config.heads
        self.scale = config.logit_multiplier / math.sqrt(self.head_width)
        inner = attention_heads * self.head_width
        self.query_DD = _matrix(init, "query", config, config.width, config.width)
        self.key_DD = _matrix(init, "key", config, config.width, config.width)
        self.value_DD = _matrix(init, "value", config, config.width, config.width)
        self.out_DD = _matrix(init, "out", config, inner, config.width)

    def forward(
        self, x_BTD: Tensor, site: Site, encodings: Encodings, context: Context, first: int
    ) -> tuple[Tensor, Tensor | None]:
        hq_BTD, hk_BTD = encodings.qk_input(x_BTD, site, context)
        if hq_BTD is hk_BTD is x_BTD:
            qkv_3D = torch.cat((self.query_DD, self.key_DD, self.value_DD))
            q_BTD, k_BTD, v_BTD = F.linear(x_BTD, qkv_3D).chunk(3, dim=-1)
        else:
            q_BTD, k_BTD = F.linear(hq_BTD, self.query_DD), F.linear(hk_BTD, self.key_DD)
            v_BTD = F.linear(x_BTD, self.value_DD)
        q_BHTK, k_BHTK, v_BHTK = (self._split(part_BTD) for part_BTD in (q_BTD, k_BTD, v_BTD))
        site = replace(site, q_BHTK=q_BHTK, k_BHTK=k_BHTK, scale=self.scale)
        q_BHTK, k_BHTK = encodings.rotate(q_BHTK, k_BHTK, site, context)
        q_BHTK, k_BHTK, v_BHTK = encodings.expand_heads(q_BHTK, k_BHTK, v_BHTK, site, context)
        site = replace(site, q_BHTK=q_BHTK, k_BHTK=k_BHTK)
        o_BHTK, attention_BHTT = attend(q_BHTK, k_BHTK, v_BHTK, site, encodings, context)
        o_BTD = o_BHTK[:, :, first:].transpose(1, 2).flatten(2)
        return F.linear(o_BTD, self.out_DD), attention_BHTT

    def _split(self, part_BTD: Tensor) -> Tensor:
        return part_BTD.view(*part_BTD.shape[:2], self.heads, self.head_width).transpose(1, 2)


def attend(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor, site: Site, encodings: Encodings, context: Context
) -> tuple[Tensor, Tensor | None]:
    """Attention in the order of the contract: logits, × scale, + biases, refine, mask, softmax, average of values.

    Returns the averages and, where a hook touches the logits, the attention itself.
    """
    factor = encodings.logit_scale(q_BHTK, site, context)
    if not encodings.touches_logits:
        if factor is not None:
            q_BHTK = q_BHTK * factor
        o_BHTK = F.scaled_dot_product_attention(
            q_BHTK, k_BHTK, v_BHTK, attn_mask=site.mask_TT, is_causal=site.causal, scale=site.scale
        )
        return o_BHTK, None
    logits_BHTT = encodings.logits(q_BHTK, k_BHTK, site, context)
    if logits_BHTT is None:
        logits_BHTT = q_BHTK @ k_BHTK.transpose(-2, -1) * site.scale
    # From here to the softmax in fp32, whatever autocast does: positions that are summed up in bf16 stop at 256.
    logits_BHTT = logits_BHTT.float()
    if factor is not None:
        logits_BHTT = logits_BHTT * factor
    site = replace(site, logits_BHTT=logits_BHTT)
    bias_BHTT = encodings.bias(site, context)
    if bias_BHTT is not None:
        logits_BHTT = logits_BHTT + bias_BHTT
    logits_BHTT = encodings.refine(logits_BHTT, replace(site, bias_BHTT=bias_BHTT), context)
    mask_TT, visible_BHTT = site.mask_TT, encodings.mask(site, context)
    assert mask_TT is not None, "only the fused path goes without"
    if visible_BHTT is not None:
        mask_TT = mask_TT & visible_BHTT
    attention_BHTT = torch.softmax(logits_BHTT.masked_fill(~mask_TT, float("-inf")), dim=-1)
    return attention_BHTT.to(v_BHTK.dtype) @ v_BHTK, attention_BHTT


class FeedForward(nn.Module):
    """Two matrices with GELU or ReLU between them, or GEGLU (Shazeer 2020, arXiv 2002.05202) with a third."""

    def __init__(self, config: ModelConfig, init: Initialiser) -> None:
        super().__init__()
        hidden = round(config.ff_ratio * config.width)
        self.activation = config.activation
        self.up_FD = _matrix(init, "up", config, config.width, hidden)
        if config.activation == "geglu":
            self.gate_FD = _matrix(init, "gate", config, config.width, hidden)
        self.down_DF = _matrix(init, "down", config, hidden, config.width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.activation == "geglu":
            up_BTF, gate_BTF = F.linear(x_BTD, torch.cat((self.up_FD, self.gate_FD))).chunk(2, dim=-1)
            hidden_BTF = up_BTF * F.gelu(gate_BTF)
        elif self.activation == "gelu":
            hidden_BTF = F.gelu(F.linear(x_BTD, self.up_FD))
        else:
            hidden_BTF = F.relu(F.linear(x_BTD, self.up_FD))
        return F.linear(hidden_BTF, self.down_DF)


class Block(nn.Module):
    """Attention and feed-forward, each with its norms and residual connection.

    before: h + f(norm(h)). after: norm(h + f(h)). both: h + norm(f(norm(h))). The block returns the positions from
    `first` on: in the last block nobody needs the others, which only serve as keys and values.
    """

    def __init__(self, config: ModelConfig, attention_heads: int, init: Initialiser) -> None:
        super().__init__()
        self.position = config.norm_position
        self.attention = Attention(config, attention_heads, init / "attention")
        self.feed_forward = FeedForward(config, init / "feed_forward")
        names = ("attention", "feed_forward")
        self.before = nn.ModuleDict(
            {name: Norm(config.norm, config.width, init) for name in names if config.norm_position != "after"}
        )
        self.after = nn.ModuleDict(
            {name: Norm(config.norm, config.width, init) for name in names if config.norm_position != "before"}
        )

    def forward(
        self,
        h_BTD: Tensor,
        site: Site,
        encodings: Encodings,
        context: Context,
        drops: tuple[Tensor, ...],
        first: int,
        last: bool,
    ) -> tuple[Tensor, Context]:
        x_BTD = self._enter("attention", h_BTD)
        site = replace(site, x_BTD=x_BTD)
        update_BTD, attention_BHTT = self.attention(x_BTD, site, encodings, context, first)
        drops = tuple(drop_BTD[:, first:] for drop_BTD in drops)
        h_BTD = self._leave("attention", h_BTD[:, first:], update_BTD, drops[:1])
        update_BTD = self.feed_forward(self._enter("feed_forward", h_BTD))
        h_BTD = self._leave("feed_forward", h_BTD, update_BTD, drops[1:])
        if attention_BHTT is not None and not last:
            context = encodings.layer_end(replace(site, h_BTD=h_BTD), attention_BHTT, context)
        return h_BTD, context

    def _enter(self, name: str, h_BTD: Tensor) -> Tensor:
        entered: Tensor = self.before[name](h_BTD) if self.position != "after" else h_BTD
        return entered

    def _leave(self, name: str, h_BTD: Tensor, update_BTD: Tensor, drop: tuple[Tensor, ...]) -> Tensor:
        if drop:
            update_BTD = update_BTD * drop[0]
        if self.position == "before":
            return h_BTD + update_BTD
        norm = self.after[name]
        left: Tensor = norm(h_BTD + update_BTD) if self.position == "after" else h_BTD + norm(update_BTD)
        return left


class Transformer(nn.Module):
    """A decoder (or, bidirectional, an encoder) from tokens to logits over the vocabulary."""

    def __init__(self, config: ModelConfig, vocabulary: int, causal: bool, pe: Expression, seed: int | None) -> None:
        super().__init__()
        init = Initialiser(seed)
        self.config, self.causal = config, causal
        self.tokens_VD = init.normal("tokens", vocabulary, config.width, std=config.embedding_std)
        self.encodings = pe.build(Shape(config.layers, config.width, config.heads), init / "encodings")
        self.attention_heads = pe.attention_heads(config.heads)
        self.blocks = nn.ModuleList(
            Block(config, self.attention_heads, init / "blocks" / layer) for layer in range(config.layers)
        )
        self.final = Norm(config.norm, config.width, init) if config.norm_position != "after" else nn.Identity()
        if not config.tied:
            self.unembed_VD = _matrix(init, "unembed", config, config.width, vocabulary)

    def draw(self, batch: Batch, random: Random, phase: Phase) -> Draws:
        """Everything random for a forward pass, outside differentiation and stacking."""
        state_BTD = None
        if self.config.state_std:
            shape = (batch.tape_length, self.config.width)
            state_BTD = random.fold("state").normal(*shape) * self.config.state_std
        return Draws(self.encodings.draw(batch, random, phase), self._draw_dropout(batch, random, phase), state_BTD)

    def _draw_dropout(self, batch: Batch, random: Random, phase: Phase) -> tuple[Tensor, ...]:
        rate = self.config.dropout
        if not phase.training or rate == 0:
            return ()
        places = 1 + 2 * self.config.layers * self.config.loops
        shape = (batch.tape_length, self.config.width)
        keep = 1 - rate
        return tuple(
            random.fold("dropout").fold(place).bernoulli(keep, *shape).to(self.tokens_VD.dtype) / keep
            for place in range(places)
        )

    def forward(self, batch: Batch, draws: Draws) -> Tensor:
        """Logits (B, T, V)."""
        logits_BTV, _ = self.logits_and_aux_loss(batch, draws)
        return logits_BTV

    def logits_and_aux_loss(
        self, batch: Batch, draws: Draws, first: int = 0, passes: Passes | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Logits (B, T − first, V) of the positions from `first` on, and the encodings' extra loss if they have one.

        passes: fewer than the model's loops, for the progressive loss; all of them, with gradient, if None.
        """
        e_BTD = F.embedding(batch.tokens_BT, self.tokens_VD)
        if self.config.embedding_scale == "sqrt_width":
            e_BTD = e_BTD * math.sqrt(self.config.width)
        context = self.encodings.prepare(batch, draws.encodings)
        e_BTD = self.encodings.embed(e_BTD, context)
        if draws.dropout:
            e_BTD = e_BTD * draws.dropout[0]
        site = Site(e_BTD, draws.encodings[0].ids_BTA, *self._mask(batch), ctx=None, layer=0)
        h_BTD = e_BTD if draws.state_BTD is None else e_BTD + draws.state_BTD
        untracked, tracked = passes or Passes(0, self.config.loops)
        for loop in range(untracked + tracked):
            last = loop == untracked + tracked - 1
            with torch.set_grad_enabled(torch.is_grad_enabled() and loop >= untracked):
                h_BTD, context = self._pass(h_BTD, e_BTD, replace(site, loop=loop), context, draws, first, last)
        h_BTD = self.final(h_BTD)
        if self.config.tied:
            logits_BTV = F.linear(h_BTD, self.tokens_VD) / math.sqrt(self.config.width)
        else:
            logits_BTV = F.linear(h_BTD, self.unembed_VD)
        return logits_BTV, self.encodings.aux_loss(context)

    def _pass(
        self, h_BTD: Tensor, e_BTD: Tensor, site: Site, context: Context, draws: Draws, first: int, last: bool
    ) -> tuple[Tensor, Context]:
        """One pass through the blocks; only the last one leaves out the positions before `first`."""
        for layer, block in enumerate(self.blocks):
            again = {"none": False, "loop": layer == 0, "layer": True}[self.config.injection]
            if again and (site.loop, layer) != (0, 0):
                h_BTD = h_BTD + e_BTD
            place = 1 + 2 * (site.loop * len(self.blocks) + layer)
            ends = last and layer == len(self.blocks) - 1
            h_BTD, context = block(
                h_BTD,
                replace(site, layer=layer),
                self.encodings,
                context,
                draws.dropout[place : place + 2],
                first if ends else 0,
                ends,
            )
        return h_BTD, context

    def _mask(self, batch: Batch) -> tuple[Tensor | None, bool]:
        """The attention mask and whether it is simply the causal one, which the fused kernel makes by itself.

        Padding is on the right, where a causal model does not look.
        """
        size = batch.tape_length
        if self.causal:
            if not self.encodings.touches_logits:
                return None, True
            return torch.ones(size, size, dtype=torch.bool, device=batch.tokens_BT.device).tril(), True
        if not batch.padded and not self.encodings.touches_logits:
            return None, False
        return batch.valid_BT[:, None, None, :].expand(-1, 1, size, -1), False


def _matrix(init: Initialiser, name: str, config: ModelConfig, inputs: int, outputs: int) -> nn.Parameter:
    """A weight matrix (outputs, inputs), normal; of standard deviation 1/√inputs unless the config names one."""
    std = config.init_std if config.init_std is not None else 1 / math.sqrt(inputs)
    return init.normal(name, outputs, inputs, std=std)

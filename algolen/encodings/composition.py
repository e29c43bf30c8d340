"""Several encodings as one: maps chain, biases add, scales multiply, masks join, one member at most owns the logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Site
from algolen.phase import Phase
from algolen.random import Random

HOOKS = (
    "map_ids", "draw", "embed", "qk_input", "rotate", "expand_heads", "logits", "logit_scale", "bias", "refine", "mask",
    "layer_end", "aux_loss",
)  # fmt: skip
LOGIT_HOOKS = ("logits", "bias", "refine", "mask", "layer_end")


class Context(NamedTuple):
    """What the members prepared for one forward pass."""

    drawn: tuple[Drawn, ...]
    ctxs: tuple[Any, ...]


class Encodings(nn.Module):
    """The encodings of a model, in the order they were written; calls only the hooks that a member overrides."""

    def __init__(self, members: Sequence[Encoding]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self._ordered = tuple(members)
        self._overriding = {
            hook: tuple(
                i for i, member in enumerate(members) if getattr(type(member), hook) is not getattr(Encoding, hook)
            )
            for hook in HOOKS
        }
        self.touches_logits = any(self._overriding[hook] for hook in LOGIT_HOOKS)

    def _of(self, hook: str) -> Iterator[tuple[int, Encoding]]:
        return ((index, self._ordered[index]) for index in self._overriding[hook])

    def _at(self, site: Site, context: Context, index: int) -> Site:
        return replace(site, ids_BTA=context.drawn[index].ids_BTA, ctx=context.ctxs[index])

    def map_ids(self, batch: Batch, random: Random, phase: Phase) -> Tensor:
        """The stream that readers read: 0 … T − 1, sent through every map in the order written; (B, T, A)."""
        ids_T = torch.arange(batch.tape_length, device=batch.tokens_BT.device)
        ids_BTA = ids_T[None, :, None].expand(len(batch), -1, 1)
        for _, member in self._of("map_ids"):
            ids_BTA = member.map_ids(ids_BTA, batch, random.fold(member.name).fold("ids"), phase)
        return ids_BTA

    def draw(self, batch: Batch, random: Random, phase: Phase) -> tuple[Drawn, ...]:
        """Everything random of a forward pass, one entry a member."""
        ids_BTA = self.map_ids(batch, random, phase)
        drawn = [Drawn(ids_BTA)] * len(self._ordered)
        for index, member in self._of("draw"):
            noise = member.draw(ids_BTA, batch, random.fold(member.name).fold("noise"), phase)
            drawn[index] = Drawn(ids_BTA, noise)
        return tuple(drawn)

    def streams(self, drawn: tuple[Drawn, ...]) -> dict[str, Tensor]:
        """What tokens are told by, for people to look at, each (B, T, A): "ids" if a member reads them, and the
        members' own streams, under the member's name too where two are called the same."""
        found = {"ids": drawn[0].ids_BTA} if any(member.reads_ids for member in self._ordered) else {}
        for member, own in zip(self._ordered, drawn, strict=True):
            for name, stream in member.streams(own).items():
                label = name if name not in found else f"{member.name} {name}"
                found[label] = stream if stream.dim() == 3 else stream[..., None]
        return found

    def prepare(self, batch: Batch, drawn: tuple[Drawn, ...]) -> Context:
        """The members' tables for a forward pass."""
        ctxs = tuple(member.prepare(batch, own) for member, own in zip(self._ordered, drawn, strict=True))
        return Context(drawn, ctxs)

    def embed(self, h_BTD: Tensor, context: Context) -> Tensor:
        """The token embeddings with every member's embedding added."""
        for index, member in self._of("embed"):
            h_BTD = member.embed(h_BTD, context.drawn[index], context.ctxs[index])
        return h_BTD

    def qk_input(self, x_BTD: Tensor, site: Site, context: Context) -> tuple[Tensor, Tensor]:
        """What queries and keys are projected from."""
        hq_BTD = hk_BTD = x_BTD
        for index, member in self._of("qk_input"):
            hq_BTD, hk_BTD = member.qk_input(hq_BTD, hk_BTD, self._at(site, context, index))
        return hq_BTD, hk_BTD

    def rotate(self, q_BHTK: Tensor, k_BHTK: Tensor, site: Site, context: Context) -> tuple[Tensor, Tensor]:
        """Queries and keys turned by every rotary member."""
        for index, member in self._of("rotate"):
            q_BHTK, k_BHTK = member.rotate(q_BHTK, k_BHTK, self._at(site, context, index))
        return q_BHTK, k_BHTK

    def expand_heads(
        self, q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor, site: Site, context: Context
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of all the heads that attend."""
        for index, member in self._of("expand_heads"):
            q_BHTK, k_BHTK, v_BHTK = member.expand_heads(q_BHTK, k_BHTK, v_BHTK, self._at(site, context, index))
        return q_BHTK, k_BHTK, v_BHTK

    def logits(self, q_BHTK: Tensor, k_BHTK: Tensor, site: Site, context: Context) -> Tensor | None:
        """The logits of the member that owns them, if one does."""
        for index, member in self._of("logits"):
            owned_BHTT = member.logits(q_BHTK, k_BHTK, self._at(site, context, index))
            if owned_BHTT is not None:
                return owned_BHTT
        return None

    def logit_scale(self, q_BHTK: Tensor, site: Site, context: Context) -> Tensor | None:
        """The product of all scales."""
        return self._join("logit_scale", site, context, lambda member, own: member.logit_scale(q_BHTK, own), torch.mul)

    def bias(self, site: Site, context: Context) -> Tensor | None:
        """The sum of all biases."""
        return self._join("bias", site, context, lambda member, own: member.bias(own), torch.add)

    def mask(self, site: Site, context: Context) -> Tensor | None:
        """Where every member lets a query see a key."""
        return self._join("mask", site, context, lambda member, own: member.mask(own), torch.logical_and)

    def _join(
        self,
        hook: str,
        site: Site,
        context: Context,
        call: Callable[[Encoding, Site], Tensor | None],
        join: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor | None:
        joined: Tensor | None = None
        for index, member in self._of(hook):
            part = call(member, self._at(site, context, index))
            if part is not None:
                joined = part if joined is None else join(joined, part)
        return joined

    def refine(self, logits_BHTT: Tensor, site: Site, context: Context) -> Tensor:
        """The logits after every member's refinement."""
        for index, member in self._of("refine"):
            logits_BHTT = member.refine(logits_BHTT, self._at(site, context, index))
        return logits_BHTT

    def layer_end(self, site: Site, attention_BHTT: Tensor, context: Context) -> Context:
        """The context for the next layer."""
        ctxs = list(context.ctxs)
        for index, member in self._of("layer_end"):
            ctxs[index] = member.layer_end(self._at(site, context, index), attention_BHTT)
        return Context(context.drawn, tuple(ctxs))

    def aux_loss(self, context: Context) -> Tensor | None:
        """The sum of the members' extra losses."""
        total: Tensor | None = None
        for index, member in self._of("aux_loss"):
            part = member.aux_loss(context.ctxs[index])
            if part is not None:
                total = part if total is None else total + part
        return total

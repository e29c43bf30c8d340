"""A training loop as one would write it by hand, in one file, for one architecture: what ours is measured against.

One layer, width 128, 4 heads, RMSNorm before and after each sublayer, GEGLU, attention logits doubled, untied, AdamW
with a cosine: the shapes of `--preset cpu` for addition. Nothing of algolen is used. Batches are handed in as finished
tensors, position ids with their random starts among them, so that the rival pays nothing for data.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, HEADS, HIDDEN = 128, 4, 512


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-6) for _ in range(4))
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        batch, tape, _ = h.shape
        qkv = self.qkv(self.norms[0](h)).view(batch, tape, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scale = 2.0 / math.sqrt(WIDTH // HEADS)
        mixed = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True, scale=scale)
        h = h + self.norms[1](self.out(mixed.transpose(1, 2).reshape(batch, tape, WIDTH)))
        up, gate = self.up(self.norms[2](h)).chunk(2, dim=-1)
        left: Tensor = h + self.norms[3](self.down(up * F.gelu(gate)))
        return left


class Model(nn.Module):
    """A decoder of one block; `positions` rows of learned positions, or none at all for 0."""

    def __init__(self, vocabulary: int, positions: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(positions, WIDTH) if positions else None
        self.block = Block()
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)
        self.unembed = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, tokens: Tensor, ids: Tensor | None) -> Tensor:
        h = self.tokens(tokens)
        if self.positions is not None:
            h = h + self.positions(ids)
        logits: Tensor = self.unembed(self.norm(self.block(h)))
        return logits


class Loop:
    """The model, its optimiser and the step that changes them."""

    def __init__(self, vocabulary: int, positions: int, steps: int, warmup: int = 100) -> None:
        torch.manual_seed(0)
        self.model = Model(vocabulary, positions)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.0, fused=True)
        self.steps, self.warmup = steps, warmup

    def step(self, number: int, tokens: Tensor, targets: Tensor, ids: Tensor | None) -> Tensor:
        """One step; targets are −100 where nothing is to be learned."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(number)
        logits = self.model(tokens, ids)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def learning_rate(self, number: int) -> float:
        """Linear warm-up, then a cosine to a tenth."""
        if number < self.warmup:
            return 1e-3 * (number + 1) / self.warmup
        progress = (number - self.warmup) / (self.steps - self.warmup)
        return 1e-3 * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))

"""Encodings made up for tests: one for each hook of the contract, shaped like the published ones that need the hook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from algolen.batch import Batch
from algolen.encodings.base import Drawn, Encoding, Ids, Shape, Site
from algolen.initialisation import Initialiser
from algolen.phase import Phase
from algolen.random import Random
from algolen.task import Task


@dataclass(frozen=True)
class SlopeOptions:
    slope: float = 0.5


class DistanceBias(Encoding):
    """Like ALiBi: a static bias that falls with the distance of the ids."""

    name, kind, paper, reads_ids, Options = "distance", "bias", "a test", True, SlopeOptions

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        ids_BT = drawn.ids_BTA[..., 0].float()
        distance_B1TT = ids_BT[:, None, :, None] - ids_BT[:, None, None, :]
        return -self.options.slope * distance_B1TT.expand(-1, self.shape.attention_heads, -1, -1)

    def bias(self, site: Site) -> Tensor:
        bias: Tensor = site.ctx
        return bias


class Gate(Encoding):
    """Like CoPE: gates from the masked logits, summed back from the query, read a table. Contextual."""

    name, kind, paper, causal_only = "gate", "bias", "a test", True

    def __init__(self, options: Any, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        self.table_KN = init.normal("table", shape.head_width, 8, std=0.5)

    def bias(self, site: Site) -> Tensor:
        assert site.logits_BHTT is not None and site.mask_TT is not None and site.q_BHTK is not None
        gates_BHTT = torch.sigmoid(site.logits_BHTT.masked_fill(~site.mask_TT, float("-inf")))
        place_BHTT = gates_BHTT.flip(-1).cumsum(-1).flip(-1).clamp(max=6.99)
        below_BHTT = place_BHTT.floor()
        logits_BHTN = (site.q_BHTK @ self.table_KN).float()
        low, high = logits_BHTN.gather(-1, below_BHTT.long()), logits_BHTN.gather(-1, below_BHTT.long() + 1)
        return torch.lerp(low, high, place_BHTT - below_BHTT)


class Refine(Encoding):
    """Like DAPE: a small network over the heads sees scaled logits and summed biases."""

    name, kind, paper = "refining", "bias", "a test"

    def __init__(self, options: Any, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        self.mix_H2H = init.normal("mix", shape.heads, 2 * shape.heads, std=0.5)

    def refine(self, logits_BHTT: Tensor, site: Site) -> Tensor:
        assert site.logits_BHTT is not None and site.bias_BHTT is not None
        both = torch.cat((site.logits_BHTT, site.bias_BHTT.expand_as(site.logits_BHTT)), dim=1)
        return logits_BHTT + nn.functional.leaky_relu(torch.einsum("hg,bgqk->bhqk", self.mix_H2H, both))


class Rotate(Encoding):
    """Like RoPE."""

    name, kind, paper, reads_ids = "rotating", "rotary", "a test", True

    def prepare(self, batch: Batch, drawn: Drawn) -> tuple[Tensor, Tensor]:
        half = self.shape.head_width // 2
        frequency_K = 100.0 ** (-torch.arange(half) / half)
        angle_BTK = drawn.ids_BTA.float() * frequency_K
        return angle_BTK.cos()[:, None], angle_BTK.sin()[:, None]

    def rotate(self, q_BHTK: Tensor, k_BHTK: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        cos, sin = site.ctx
        return self._turn(q_BHTK, cos, sin), self._turn(k_BHTK, cos, sin)

    @staticmethod
    def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class Window(Encoding):
    """A query sees itself and the `reach` keys before it."""

    name, kind, paper, causal_only = "window", "mask", "a test", True
    reach = 3

    def mask(self, site: Site) -> Tensor:
        assert site.mask_TT is not None
        index_T = torch.arange(site.mask_TT.shape[-1])
        return index_T[:, None] - index_T <= self.reach


class LogN(Encoding):
    """Like log-n scaling: logits grow with the logarithm of the number of visible keys."""

    name, kind, paper, causal_only = "logn-toy", "scale", "a test", True

    def logit_scale(self, q_BHTK: Tensor, site: Site) -> Tensor:
        return torch.arange(1, q_BHTK.shape[-2] + 1).float().log1p()[:, None]


class Infused(Encoding):
    """Like position-infused attention: added to what queries and keys are projected from."""

    name, kind, paper, reads_ids = "infused", "qk", "a test", True

    def __init__(self, options: Any, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        self.table_ND = init.normal("table", 1024, shape.width, std=0.5)

    def qk_input(self, hq_BTD: Tensor, hk_BTD: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        added_BTD = nn.functional.embedding(site.ids_BTA[..., 0], self.table_ND)
        return hq_BTD + added_BTD, hk_BTD + added_BTD


class State(Encoding):
    """Like TAPE: a state of its own, changed by every layer's attention and seen by the next."""

    name, kind, paper = "state", "state", "a test"

    def prepare(self, batch: Batch, drawn: Drawn) -> Tensor:
        return drawn.ids_BTA[:, None, :, 0].float().expand(-1, self.shape.heads, -1) / 10

    def bias(self, site: Site) -> Tensor:
        state_BHT: Tensor = site.ctx
        return state_BHT[..., None, :]

    def layer_end(self, site: Site, attention_BHTT: Tensor) -> Tensor:
        state_BHT: Tensor = site.ctx
        return state_BHT + (attention_BHTT @ state_BHT[..., None])[..., 0]


class Doubled(Encoding):
    """Like RoPE++: twice the heads from the same projections, the new ones with turned queries."""

    name, kind, paper = "doubled", "heads", "a test"

    @classmethod
    def attention_heads(cls, options: Any, heads: int) -> int:
        return 2 * heads

    def expand_heads(self, q: Tensor, k: Tensor, v: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        a, b = q.chunk(2, dim=-1)
        return torch.cat((q, torch.cat((b, -a), dim=-1)), 1), torch.cat((k, k), 1), torch.cat((v, v), 1)


class Owner(Encoding):
    """Owns the logits: a distance kernel in place of q·k."""

    name, kind, paper = "owner", "logits", "a test"

    def logits(self, q_BHTK: Tensor, k_BHTK: Tensor, site: Site) -> Tensor:
        return -torch.cdist(q_BHTK, k_BHTK)


class Noisy(Encoding):
    """Like Abacus: a stream of its own from the task's digits, shifted by one draw a batch; an extra loss."""

    name, kind, paper, needs = "noisy", "embedding", "a test", frozenset({"digit"})

    def __init__(self, options: Any, shape: Shape, init: Initialiser) -> None:
        super().__init__(options, shape, init)
        self.table_ND = init.normal("table", 1024, shape.width, std=0.5)

    def draw(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        assert batch.structure.digit_BT is not None
        shift_B = random.shared().integers(0, 20) if phase.training else torch.zeros(len(batch), dtype=torch.int64)
        return (shift_B[:, None] + 1) * batch.structure.digit_BT

    def embed(self, h_BTD: Tensor, drawn: Drawn, ctx: Any) -> Tensor:
        return h_BTD + nn.functional.embedding(drawn.noise, self.table_ND)

    def aux_loss(self, ctx: Any) -> Tensor:
        return self.table_ND.square().mean()


class Halved(Encoding):
    """A map to fractional ids."""

    name, kind, paper = "halved", "ids", "a test"

    @classmethod
    def map_range(cls, options: Any, ids: Ids, task: Task, length: int) -> Ids:
        return Ids(ids.axes, ids.largest // 2 + 1, ids.increasing, integers=False)

    def map_ids(self, ids_BTA: Tensor, batch: Batch, random: Random, phase: Phase) -> Tensor:
        return ids_BTA / 2


TOYS: dict[str, type[Encoding]] = {
    toy.name: toy
    for toy in (DistanceBias, Gate, Refine, Rotate, Window, LogN, Infused, State, Doubled, Owner, Noisy, Halved)
}

EXPRESSIONS = (
    "nope",
    "learned",
    "offset",
    "coupling",
    "distance",
    "coupling+distance",
    "gate",
    "distance+refining",
    "rotating",
    "offset+rotating+logn-toy",
    "learned+window",
    "infused",
    "state",
    "doubled",
    "rotating+doubled+distance",
    "owner+distance",
    "noisy+distance",
    "halved+rotating",
    "sinusoidal",
    "rope",
    "rope+doubled+alibi",
    "coupling+rope",
    "alibi",
    "offset+alibi",
    "coupling+alibi",
    "t5",
    "coupling+t5",
    "fire",
    "coupling+fire",
    "cope",
    "rope+cope",
    "doubled+cope",
    "shaw",
    "coupling+shaw",
    "transformer-xl",
    "coupling+transformer-xl",
    "offset+doubled+transformer-xl",
    "hard-alibi",
    "doubled+hard-alibi",
    "logn",
    "rope+logn",
    "doubled+alibi+logn",
    "abacus",
    "abacus+fire",
    "randomized",
    "randomized+sinusoidal",
    "coupling+randomized+rope",
    "offset+randomized+learned",
    "randomized-relative",
    "doubled+randomized-relative",
    "randomized-alibi",
    "randomized-alibi+rope",
    "coupling+learned+randomized-alibi",
)
"""Expressions that between them use every hook."""

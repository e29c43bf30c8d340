"""Selective copying: `[EOS] . b . . a c . = b a c`, or the same with markers, `. b . . a c . = = =`."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.errors import UserError
from algolen.random import Random
from algolen.task import PADDING, Layout, Task

EOS, EQUALS, BLANK, FIRST = 1, 2, 3, 4
EDGES = ("blanks first", "blanks last", "evenly spread", "no blanks")


@dataclass(frozen=True)
class SelectiveCopy(Task):
    """Drops the blanks and repeats the rest in order.

    The nominal length is the number K of symbols to keep; `blanks` says how many blanks `.` there are among them. Kept
    symbols are uniform, and so are their places: every subset of the input's places is as likely.

    `answer=suffix` (Golovneva et al. 2024) is `[EOS] input = answer [EOS]`; the answer and the last `[EOS]` are
    predicted, and the answer is fed back. Their 256 blanks in training against 128 (dense) and 512 (sparse) at test are
    `blanks_counted=total`, `blanks=256` and those values along the axis `blanks`, at one length: how many symbols they
    keep is not published, nor how the answer is set off. `answer=markers` (Gu & Dao 2023) is the input and K markers
    `=`, at which the answer is predicted. Theirs is length 16, `blanks_counted=total` and `blanks=4096`, if the
    paper's "length 4096" counts the blanks alone, as in the public reproduction.

    An answer counts as a whole; Gu & Dao's accuracy is that of tokens. No coupled ids are published.
    """

    name = "selective-copy"
    version = 1
    source = "Gu & Dao 2023, arXiv 2312.00752; Golovneva et al. 2024, arXiv 2405.18719"
    axes = ("blanks",)
    test_sets: ClassVar[Mapping[str, str]] = {
        "random": "drawn as in training",
        "edge": "all blanks in front, all behind, evenly spread (alternating where there are as many), or none",
    }

    blanks: Annotated[float, Field(ge=0, le=1e6, description="how many blanks there are")] = 1.0
    blanks_counted: Annotated[
        Literal["each", "total"],
        Field(description="each: blanks for every kept symbol (rounded in all); total: blanks in the whole input"),
    ] = "each"
    alphabet: Annotated[int, Field(ge=2, le=1024, description="how many different symbols can be kept")] = 14
    answer: Annotated[
        Literal["suffix", "markers"],
        Field(description="suffix: after a separator and fed back; markers: predicted at one marker for each symbol"),
    ] = "suffix"

    def __post_init__(self) -> None:
        if self.blanks_counted == "total" and self.blanks != int(self.blanks):
            raise UserError(f"selective-copy.blanks={self.blanks:g} should be a whole number where blanks are in total")

    @property
    def layout(self) -> Layout:
        return Layout.SUFFIX if self.answer == "suffix" else Layout.LABELS

    @property
    def vocabulary(self) -> tuple[str, ...]:
        rounds, letters = range(-(-self.alphabet // 26)), string.ascii_lowercase
        kept = [f"{letter}{again or ''}" for again in rounds for letter in letters][: self.alphabet]
        return ("[PAD]", "[EOS]", "=", ".", *kept)

    @property
    def _front(self) -> int:
        """How many tokens stand before the input, and also how many the answer has beside the kept symbols."""
        return 1 if self.answer == "suffix" else 0

    def slots(self, length: int) -> int:
        """How many symbols the input has, blanks among them."""
        if self.blanks_counted == "total":
            return length + int(self.blanks)
        return length + math.floor(self.blanks * length + 0.5)

    def tape_length(self, length: int) -> int:
        return 2 * self._front + self.slots(length) + length

    # Sampling ---------------------------------------------------------------------------------------------------------

    def sample(self, lengths_B: Tensor, random: Random) -> Batch:
        slots_B = self._slots(lengths_B)
        slots_B1, length_B1 = (sizes_B.to(random.device)[:, None] for sizes_B in (slots_B, lengths_B))
        slot_W = torch.arange(int(slots_B.max()), device=random.device)
        # The first places of a random order that puts those beyond the input last.
        order_BW = random.fold("places").bits(len(slot_W)).masked_fill(slot_W >= slots_B1, torch.iinfo(torch.int64).max)
        place_BW = order_BW.argsort(dim=1, stable=True)
        kept_BW = torch.zeros_like(place_BW, dtype=torch.bool).scatter(1, place_BW, slot_W < length_B1)
        return self._batch(lengths_B, slots_B1, kept_BW, random)

    def sample_test(self, test_set: str, lengths_B: Tensor, random: Random) -> Batch:
        if test_set != "edge":
            return super().sample_test(test_set, lengths_B, random)
        slots_B = self._slots(lengths_B)
        slots_B1, length_B1 = (sizes_B.to(random.device)[:, None] for sizes_B in (slots_B, lengths_B))
        slot_W = torch.arange(int(slots_B.max()), device=random.device)
        cases_BEW = torch.stack(
            [
                slot_W >= slots_B1 - length_B1,
                slot_W < length_B1,
                slot_W * length_B1 % slots_B1 < length_B1,
                slot_W < length_B1,
            ],
            dim=1,
        )
        kind_B = random.fold("kind").integers(0, len(EDGES), 1)[:, 0]
        kept_BW = cases_BEW[torch.arange(len(random), device=random.device), kind_B]
        slots_B1 = torch.where((kind_B == EDGES.index("no blanks"))[:, None], length_B1, slots_B1)
        return self._batch(lengths_B, slots_B1, kept_BW, random, kind_B)

    def stratum_name(self, test_set: str, stratum: int) -> str:
        return EDGES[stratum] if test_set == "edge" else ""

    def _slots(self, lengths_B: Tensor) -> Tensor:
        """`slots` of every length."""
        if self.blanks_counted == "total":
            return lengths_B + int(self.blanks)
        return lengths_B + (self.blanks * lengths_B.double() + 0.5).floor().long()

    def _batch(
        self, lengths_B: Tensor, slots_B1: Tensor, kept_BW: Tensor, random: Random, edge_B: Tensor | None = None
    ) -> Batch:
        """The batch whose inputs have as many slots, symbols in those that are kept and blanks in the others; what
        `kept_BW` says beyond an input is not read."""
        shortest, longest = int(lengths_B.min()), int(lengths_B.max())
        length_B1 = lengths_B.to(random.device)[:, None]
        kept_BK = random.fold("symbols").integers(FIRST, FIRST + self.alphabet, longest)
        ordinal_BW = (kept_BW.cumsum(dim=1) - 1).clamp(0, longest - 1)
        input_BW = torch.where(kept_BW, kept_BK.gather(1, ordinal_BW), BLANK)

        index_T = torch.arange(self.tape_length(longest), device=random.device)
        answered_BT = index_T - self._front - slots_B1
        answer_BT = kept_BK.gather(1, answered_BT.clamp(0, longest - 1))
        answer_BT = torch.where(answered_BT < length_B1, answer_BT, EOS)
        scored_BT = (answered_BT >= 0) & (answered_BT < length_B1 + self._front)
        valid_BT = answered_BT < length_B1 + self._front

        place_BT = (index_T - self._front).expand(len(random), -1).clamp(0, kept_BW.shape[1] - 1)
        tokens_BT = torch.where(answered_BT < 0, input_BW.gather(1, place_BT), EQUALS)
        if self.answer == "suffix":
            tokens_BT = torch.where(index_T == 0, EOS, tokens_BT)
            tokens_BT = torch.where(answered_BT > 0, F.pad(answer_BT, (1, 0))[:, :-1], tokens_BT)
        tokens_BT = torch.where(valid_BT, tokens_BT, PADDING)
        fewest = shortest if edge_B is not None else self.slots(shortest)
        return Batch(
            tokens_BT=tokens_BT,
            targets_BT=torch.where(scored_BT, answer_BT, PADDING),
            trained_BT=scored_BT,
            scored_BT=scored_BT,
            unit_BT=scored_BT.long() - 1,
            stratum_BT=torch.zeros_like(tokens_BT) if edge_B is None else edge_B[:, None] * scored_BT,
            valid_BT=valid_BT,
            size_BA=length_B1,
            structure=self.structure(tokens_BT, length_B1),
            padded=shortest != longest or fewest != self.slots(longest),
            predicted_from=self._front + fewest,
        )

    def structure(self, tokens_BT: Tensor, size_BA: Tensor) -> Structure:
        return Structure()

    # References -------------------------------------------------------------------------------------------------------

    def oracle(self, symbols: Sequence[str]) -> Mapping[int, str]:
        asked = list(symbols).index("=")
        kept = [symbol for symbol in symbols[:asked] if symbol not in (".", "[EOS]")]
        return dict(enumerate([*kept, "[EOS]"] if self.answer == "suffix" else kept, start=asked))

    def chance(self, length: int) -> float:
        """One of all answers of K symbols."""
        return float(self.alphabet) ** -length

    def input_blind(self, length: int) -> float:
        """All answers of K symbols are as likely."""
        return self.chance(length)

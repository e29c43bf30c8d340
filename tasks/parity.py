"""Parity of a string of bits: `[EOS] 1 0 1 1 = 1`, or with the running parities `[EOS] 1 0 1 1 = 1 1 0 1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.random import Random
from algolen.suffix import EQUALS, FIRST, SYMBOLS, ids_in_order, one_of, segments, suffix_batch, within_table
from algolen.task import Layout, Task

EDGES = (
    "00…0",
    "11…1",
    "10…0",
    "0…01",
    "one 1 anywhere",
    "one 0 anywhere",
    "0101…",
    "1010…",
)


@dataclass(frozen=True)
class Parity(Task):
    """Says whether the number of ones among L bits is even (0) or odd (1).

    The tape is `[EOS] bits = answer`; the answer and a last `[EOS]` are predicted. With a scratchpad the answer is the
    parity of the bits so far, after each bit; it is scored as a whole, and its last symbol is the parity of all.

    Coupled ids, with start 1, as in the published code. Answer only: the bits and the answer have id 1, `=` has 2. With
    a scratchpad: the first bit and the first running parity have id 2 and so on, and `=` has 1.
    """

    name = "parity"
    version = 1
    source = "Cho et al. 2024, arXiv 2405.20671; Huang et al. 2025, arXiv 2410.02140"
    layout = Layout.SUFFIX
    test_sets: ClassVar[Mapping[str, str]] = {
        "random": "drawn as in training",
        "edge": "bits that random ones hardly ever are: all alike, all but one alike, alternating",
    }

    scratchpad: Annotated[
        bool, Field(description="answer with the parity after each bit, instead of the last one only")
    ] = False
    bits: Annotated[
        Literal["iid", "ones"],
        Field(description="iid: independent fair bits; ones: their number of ones is uniform on 0 to L"),
    ] = "iid"

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*SYMBOLS, "0", "1")

    @property
    def structures(self) -> frozenset[str]:
        return frozenset({"coupled", "digit", "segment"})

    def tape_length(self, length: int) -> int:
        return length + 2 + (length if self.scratchpad else 1)

    def largest_coupled_id(self, length: int) -> int:
        return length + 1 if self.scratchpad else 2

    def longest_number(self, length: int) -> int:
        return length

    # Sampling ---------------------------------------------------------------------------------------------------------

    def sample(self, lengths_B: Tensor, random: Random) -> Batch:
        return self._batch(lengths_B, self._random_bits(lengths_B, random))

    def sample_test(self, test_set: str, lengths_B: Tensor, random: Random) -> Batch:
        if test_set != "edge":
            return super().sample_test(test_set, lengths_B, random)
        cases = edge_cases(_places(lengths_B, random), lengths_B.to(random.device)[:, None], random)
        return self._batch(lengths_B, *one_of(cases, random.fold("kind")))

    def stratum_name(self, test_set: str, stratum: int) -> str:
        return EDGES[stratum] if test_set == "edge" else f"parity {stratum}"

    def _random_bits(self, lengths_B: Tensor, random: Random) -> Tensor:
        place_L = _places(lengths_B, random)
        if self.bits == "iid":
            return random.fold("bits").integers(0, 2, len(place_L))
        length_B1 = lengths_B.to(random.device)[:, None]
        ones_B1 = random.fold("ones").integers(0, length_B1 + 1, 1)
        # Places beyond an example's length sort behind those within, so that no neighbour changes what is drawn.
        behind = torch.iinfo(torch.int64).max
        key_BL = torch.where(place_L < length_B1, random.fold("order").bits(len(place_L)), behind)
        order_BL = key_BL.argsort(dim=1, stable=True)
        return torch.zeros_like(order_BL).scatter_(1, order_BL, (place_L < ones_B1).long())

    def _batch(self, lengths_B: Tensor, bits_BL: Tensor, stratum_B: Tensor | None = None) -> Batch:
        """The batch of given bits; the stratum is the parity, which tells a constant answer from a guess, unless
        another is given."""
        length_B1 = lengths_B.to(bits_BL.device)[:, None]
        running_BL = bits_BL.cumsum(dim=1) & 1
        parity_B1 = running_BL.gather(1, length_B1 - 1)
        answer_BA, answered_B1 = (running_BL, length_B1) if self.scratchpad else (parity_B1, torch.ones_like(length_B1))
        if stratum_B is None:
            stratum_B = parity_B1[:, 0]
        return suffix_batch(self, lengths_B, bits_BL + FIRST, answer_BA + FIRST, answered_B1, stratum_B)

    # Structure --------------------------------------------------------------------------------------------------------

    def structure(self, tokens_BT: Tensor, size_BA: Tensor) -> Structure:
        if self.scratchpad:
            id_BT = ids_in_order(tokens_BT, size_BA)
        else:
            id_BT = within_table((tokens_BT == EQUALS) + 1, tokens_BT, size_BA)
        return Structure(coupled_BTA=id_BT[..., None], digit_BT=tokens_BT > EQUALS, segment_BT=segments(tokens_BT))

    # References -------------------------------------------------------------------------------------------------------

    def oracle(self, symbols: Sequence[str]) -> Mapping[int, str]:
        equals = list(symbols).index("=")
        bits = symbols[1:equals]
        ends = range(1, len(bits) + 1) if self.scratchpad else [len(bits)]
        answer = [str(bits[:end].count("1") % 2) for end in ends]
        return dict(enumerate([*answer, "[EOS]"], start=equals))

    def chance(self, length: int) -> float:
        return 0.5**length if self.scratchpad else 0.5

    def input_blind(self, length: int) -> float:
        """The probability of the most probable answer.

        Running parities tell the bits, so with a scratchpad it is that of the most probable string of bits. Independent
        bits make all strings alike. With a uniform number of ones, a string with k of them has probability
        1 / ((L + 1) · C(L, k)), the largest for k = 0 and k = L. Without a scratchpad the answer 0 is right for the
        ⌊L / 2⌋ + 1 even numbers among 0 … L, which is never less than half of them.
        """
        if self.bits == "iid":
            return self.chance(length)
        return (1 if self.scratchpad else length // 2 + 1) / (length + 1)


def _places(lengths_B: Tensor, random: Random) -> Tensor:
    return torch.arange(int(lengths_B.max()), device=random.device)


def edge_cases(place_L: Tensor, length_B1: Tensor, random: Random) -> list[Tensor]:
    """The (B, L) bits of each of `EDGES`."""
    anywhere_B1 = random.fold("anywhere").integers(0, length_B1, 1)
    cases = (
        place_L < 0,
        place_L >= 0,
        place_L == 0,
        place_L == length_B1 - 1,
        place_L == anywhere_B1,
        place_L != anywhere_B1,
        place_L % 2 == 1,
        place_L % 2 == 0,
    )
    return [case.expand(len(random), -1).long() for case in cases]
